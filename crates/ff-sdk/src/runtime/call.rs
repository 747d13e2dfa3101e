//! One call of a handler, as layers and extractors see it.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Task, TaskInfo};

/// A call of a handler: the request that layers see. Cheap to clone.
///
/// ```
/// use ff_sdk::runtime::TaskCall;
///
/// fn label(call: &TaskCall) -> String {
///     format!("{} #{}", call.info().kind(), call.info().attempt_index())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TaskCall {
    task: Task,
    data: Arc<DataMap>,
}

impl TaskCall {
    pub(super) fn new(task: Task, data: Arc<DataMap>) -> Self {
        Self { task, data }
    }

    /// What the task is.
    pub fn info(&self) -> &TaskInfo {
        self.task.info()
    }

    /// The task itself.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// What [`WorkerRuntime::data`](super::WorkerRuntime::data) was given of this type.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, FromTask, TaskCall};
    ///
    /// struct Region(&'static str);
    ///
    /// /// Takes the region of the runtime, or a default.
    /// struct Here(String);
    ///
    /// impl FromTask for Here {
    ///     fn from_task(call: &TaskCall) -> Result<Self, Failure> {
    ///         let region = call.data::<Region>();
    ///         Ok(Self(region.map_or("nowhere", |region| region.0).to_owned()))
    ///     }
    /// }
    ///
    /// async fn place(here: Here) -> String {
    ///     here.0
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("place"), place).await;
    /// assert_eq!(done.result::<String>().await?, "nowhere");
    /// # Ok(())
    /// # }
    /// ```
    pub fn data<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.data.get()
    }
}

/// Shared data, one value of each type.
#[derive(Default, Clone)]
pub(super) struct DataMap(HashMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>);

impl DataMap {
    /// Whether there was one of the type before.
    pub(super) fn put<T: Send + Sync + 'static>(&mut self, value: T) -> bool {
        self.0.insert(TypeId::of::<T>(), (type_name::<T>(), Arc::new(value))).is_some()
    }

    fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.0.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }
}

impl fmt::Debug for DataMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.values().map(|(name, _)| name)).finish()
    }
}
