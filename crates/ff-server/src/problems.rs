//! The pages that the `type` of a problem names.

use ff_core::error::{Class, Code};

/// What a code means, for a person.
pub(crate) fn page(code: Code) -> String {
    let advice = match code.class() {
        Class::Terminal => "Change the request, or give up: the same again gives the same answer.",
        Class::Retryable => "Try again later, or another way.",
        Class::Cooperative => "Hold back: a limit on spending was met.",
        Class::Informational => "Go on: what was asked for is already so, or no longer possible.",
        Class::Precondition => "Read again: the thing changed meanwhile.",
        Class::Bug => "Report it, with the trace id: this is a defect of FlowFabric.",
    };
    format!(
        "# {code}\n\nGroup: {}. HTTP status {}. Exit code {}. {}\n\n{advice}\n",
        code.group(),
        code.http_status(),
        code.exit_code(),
        if code.is_retryable() { "Retryable." } else { "Not retryable." },
    )
}
