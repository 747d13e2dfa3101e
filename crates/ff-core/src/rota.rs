//! Smooth weighted round robin over lanes.
//!
//! Every pick adds each lane's weight to its credit, takes the lane with the most credit, and
//! charges it the sum of all weights. Credits travel with the claim, so a store that keeps nothing
//! of a worker still serves its lanes in proportion over many claims.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use crate::operation::{LaneOrder, LaneShare, Task};

/// The rota of one claim.
#[derive(Debug, Clone)]
pub struct Rota {
    shares: Vec<LaneShare>,
    /// Lanes that were found empty take no further turn in this claim.
    empty: Vec<bool>,
    order: LaneOrder,
}

impl Rota {
    pub fn new(shares: &[LaneShare], order: LaneOrder) -> Self {
        Self { shares: shares.to_vec(), empty: vec![false; shares.len()], order }
    }

    /// The lane to look at now: its place among the shares. None when all are empty.
    pub fn pick(&self) -> Option<usize> {
        let open = (0..self.shares.len()).filter(|&lane| !self.empty[lane]);
        match self.order {
            LaneOrder::Ordered => open.min(),
            // The first of several with the most credit, so that the order is the caller's.
            LaneOrder::Weighted => open.min_by_key(|&lane| {
                let share = &self.shares[lane];
                std::cmp::Reverse(share.credit + i64::from(share.weight))
            }),
        }
    }

    pub fn mark_empty(&mut self, lane: usize) {
        self.empty[lane] = true;
    }

    /// Lanes that were found empty may have work again.
    pub fn reopen(&mut self) {
        self.empty.fill(false);
    }

    /// Charges `lane` for a task. Empty lanes neither gain nor pay: they must not save up turns.
    pub fn charge(&mut self, lane: usize) {
        if self.order == LaneOrder::Ordered {
            return;
        }
        let mut total = 0;
        for (share, empty) in self.shares.iter_mut().zip(&self.empty) {
            if !empty {
                share.credit += i64::from(share.weight);
                total += i64::from(share.weight);
            }
        }
        self.shares[lane].credit -= total;
    }

    /// The credits to bring along with the next claim.
    pub fn into_shares(self) -> Vec<LaneShare> {
        self.shares
    }
}

/// The shares of a worker after a claim that brought these tasks. A lane without work must not save
/// up turns, so no credit is larger than one round.
pub fn charged(shares: &[LaneShare], order: LaneOrder, tasks: &[Task]) -> Vec<LaneShare> {
    let mut rota = Rota::new(shares, order);
    for task in tasks {
        if let Some(lane) = shares.iter().position(|share| share.lane == task.lane) {
            rota.charge(lane);
        }
    }
    let round: i64 = shares.iter().map(|share| i64::from(share.weight)).sum();
    let mut shares = rota.into_shares();
    for share in &mut shares {
        share.credit = share.credit.clamp(-round, round);
    }
    shares
}

/// Lanes keep the places that they have among each other; in each of them the best comes first.
pub fn best_first<T, L: Eq + Hash, K: Ord>(
    mut found: Vec<T>,
    lane: impl Fn(&T) -> L,
    order: impl FnMut(&T) -> K,
) -> Vec<T> {
    let lanes: Vec<L> = found.iter().map(&lane).collect();
    found.sort_by_key(order);
    let mut by_lane: HashMap<L, VecDeque<T>> = HashMap::new();
    for each in found {
        by_lane.entry(lane(&each)).or_default().push_back(each);
    }
    lanes.iter().filter_map(|lane| by_lane.get_mut(lane)?.pop_front()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::LaneId;

    fn shares(weights: &[u32]) -> Vec<LaneShare> {
        let share = |(n, &weight)| LaneShare {
            lane: LaneId::new(format!("lane{n}")).unwrap(),
            weight,
            credit: 0,
        };
        weights.iter().enumerate().map(share).collect()
    }

    fn turns(rota: &mut Rota, n: usize) -> Vec<usize> {
        let mut turns = Vec::new();
        for _ in 0..n {
            let lane = rota.pick().unwrap();
            rota.charge(lane);
            turns.push(lane);
        }
        turns
    }

    #[test]
    fn weights_are_met_smoothly() {
        let mut rota = Rota::new(&shares(&[5, 1, 1]), LaneOrder::Weighted);
        assert_eq!(turns(&mut rota, 7), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn equal_weights_take_turns() {
        let mut rota = Rota::new(&shares(&[1, 1, 1]), LaneOrder::Weighted);
        assert_eq!(turns(&mut rota, 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn credits_carry_over_claims_of_one() {
        let mut shares = shares(&[2, 1]);
        let mut seen = Vec::new();
        for _ in 0..6 {
            let mut rota = Rota::new(&shares, LaneOrder::Weighted);
            seen.extend(turns(&mut rota, 1));
            shares = rota.into_shares();
        }
        assert_eq!(seen, [0, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn ordered_prefers_the_first_with_work() {
        let mut rota = Rota::new(&shares(&[1, 9]), LaneOrder::Ordered);
        assert_eq!(turns(&mut rota, 2), [0, 0]);
        rota.mark_empty(0);
        assert_eq!(turns(&mut rota, 1), [1]);
        rota.mark_empty(1);
        assert_eq!(rota.pick(), None);
    }
}
