//! A bounded map of what was used lately.

use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: what is asked for moves to the young one, and what was not asked for during a
/// whole generation goes. About twice a generation is kept.
#[derive(Debug)]
pub struct Recent<K, V> {
    generation: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone> Recent<K, V> {
    pub fn new(generation: usize) -> Self {
        Self { generation, young: HashMap::new(), old: HashMap::new() }
    }

    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let (key, found) = self.old.remove_entry(key)?;
        self.keep(key, found.clone());
        Some(found)
    }

    pub fn keep(&mut self, key: K, value: V) {
        if self.young.len() >= self.generation {
            self.old = std::mem::take(&mut self.young);
        } else {
            self.old.remove(&key);
        }
        self.young.insert(key, value);
    }

    pub fn forget(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.young.iter().chain(&self.old)
    }

    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut recent = Recent::new(100);
        recent.keep(0, "first");
        for n in 1..=400 {
            recent.keep(n, "other");
            if n % 10 == 0 {
                assert_eq!(recent.get(&0), Some("first"), "still used after {n}");
            }
        }
        assert!(recent.len() <= 201, "{}", recent.len());
        assert_eq!(recent.get(&1), None);
        recent.forget(&0);
        assert_eq!(recent.get(&0), None);
    }
}
