//! The time a peer may be silent before its links are down, where the user does not give it.

use weft_agent_config::LINK_TIMEOUT_MS;

/// Up to this number of cables between agents, an agent's own default holds.
const FEW_CABLES: f64 = 160.0;
/// Signs of life grow with the number of cables, and seldomer ones keep what they cost in bounds: with 1296 cables a peer
/// has 3.7 s, with 35 000 it has 9.5 s.
const GROWTH: f64 = 0.29;

/// The link timeout of a laboratory with this number of cables between its agents.
pub(crate) fn link_timeout_ms(between_agents: usize) -> u64 {
    (LINK_TIMEOUT_MS as f64 * (between_agents as f64 / FEW_CABLES).max(1.0).powf(GROWTH)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::link_timeout_ms as of_cables;

    /// The cables of real fabrics: of 100 agents, of 702, and of 13 284.
    #[test]
    fn link_timeout_grows_with_cables_within_documented_bounds() {
        assert_eq!((of_cables(0), of_cables(159)), (2000, 2000));
        assert!(of_cables(1296) <= 4000 && of_cables(5832) <= 7000 && of_cables(34_992) <= 10_000);
        assert!(of_cables(1296) < of_cables(5832) && of_cables(5832) < of_cables(34_992));
    }
}
