//! Boot, health and the clock.

use crate::stages::BEGINNING;
use crate::world::World;

pub async fn a_store_answers_and_says_who_it_is(world: &World) {
    world.backend.ping().await.unwrap();
    let label = world.backend.backend_label();
    assert_eq!(world.backend.identity().backend, label);
    assert_eq!(world.backend.settings().store, label);
    assert!(!world.backend.identity().version.is_empty());
    let task = world.start(world.work()).await;
    assert_eq!(task.handle.store, label);
}

pub async fn the_stores_clock_decides(world: &World) {
    assert_eq!(world.now().await, BEGINNING);
    world.advance(1_234).await;
    let id = world.submit(world.work()).await;
    let record = world.describe(id).await;
    assert_eq!((record.created_at, world.now().await), (BEGINNING.after(1_234), record.created_at));
}
