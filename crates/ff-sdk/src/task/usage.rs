//! What an attempt has used.

use std::collections::BTreeMap;

use ff_core::id::Dimension;

use crate::config::parse;
use crate::error::SdkError;

/// Amounts by dimension, to be reported to budgets.
///
/// ```
/// use ff_sdk::Usage;
///
/// let usage = Usage::new().input_tokens(812).output_tokens(64).wall_ms(950).custom("images", 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage(BTreeMap<String, u64>);

impl Usage {
    /// Nothing yet.
    ///
    /// ```
    /// assert_eq!(ff_sdk::Usage::new(), ff_sdk::Usage::default());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Tokens that a model has read.
    ///
    /// ```
    /// # use ff_sdk::Usage;
    /// assert_eq!(Usage::new().input_tokens(8), Usage::new().custom("input_tokens", 8));
    /// ```
    #[must_use]
    pub fn input_tokens(self, tokens: u64) -> Self {
        self.custom("input_tokens", tokens)
    }

    /// Tokens that a model has written.
    ///
    /// ```
    /// # use ff_sdk::Usage;
    /// assert_eq!(Usage::new().output_tokens(8), Usage::new().custom("output_tokens", 8));
    /// ```
    #[must_use]
    pub fn output_tokens(self, tokens: u64) -> Self {
        self.custom("output_tokens", tokens)
    }

    /// Time that has gone by.
    ///
    /// ```
    /// # use ff_sdk::Usage;
    /// assert_eq!(Usage::new().wall_ms(8), Usage::new().custom("wall_ms", 8));
    /// ```
    #[must_use]
    pub fn wall_ms(self, ms: u64) -> Self {
        self.custom("wall_ms", ms)
    }

    /// An amount of any other dimension. Given twice, amounts add up.
    ///
    /// ```
    /// # use ff_sdk::Usage;
    /// let twice = Usage::new().custom("images", 1).custom("images", 2);
    /// assert_eq!(twice, Usage::new().custom("images", 3));
    /// ```
    #[must_use]
    pub fn custom(mut self, dimension: impl Into<String>, amount: u64) -> Self {
        let counted = self.0.entry(dimension.into()).or_default();
        *counted = counted.saturating_add(amount);
        self
    }

    pub(crate) fn dimensions(&self) -> Result<BTreeMap<Dimension, u64>, SdkError> {
        let read = |(name, amount): (&String, &u64)| Ok((parse("dimensions", name)?, *amount));
        self.0.iter().map(read).collect()
    }
}
