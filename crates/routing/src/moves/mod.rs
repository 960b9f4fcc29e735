//! Moves of virtual machines: which blocks of which switches are written, and in which order, so that a machine keeps its LID.
//!
//! ```text
//!   moves ──▶ change   by a method: the rows of each LID that are taken over from another LID, at few switches
//!   asked ──────└──▶ planner  blocks and rounds: what each switch waits for
//!                     ├──▶ detour   rows of the meantime at switches that would turn packets of the old way round
//!                     ├──▶ drain    for how long packets of earlier rows are under way
//!                     └──▶ prove  every mixture of old and new rows, with packets under way, from the writes alone
//! ```
//!
//! The methods are those of two papers on vSwitches: Tasoulas, Gran, Johnsen, Begnum and Skeie, "Towards the InfiniBand
//! SR-IOV vSwitch Architecture" (2015), and Tasoulas, Gran, Zahid and others (2017), which adds FTreeMinRC. Rows are taken over
//! from the tables *in force*, so a request that was carried out in part converges when it is planned again.
//!
//! Where service levels differ by pair, a machine gets those of its new place. Its peers send on the old ones until they have heard of that, so
//! both levels meet both rows: all four are proved together. If that closes a circle, the queue pairs to and of the machine are held
//! until rows and levels are those of the new place.
//!
//! [`Kept`] is made once for the tables in force; [`Planner`] plans and proves; a plan is only ever a list of writes.

mod asked;
mod change;
mod course;
mod detour;
mod draft;
mod drain;
mod error;
mod kept;
mod network;
mod plan;
mod planner;
mod prove;
mod rebalance;
mod request;
mod skyline;
mod stage;
mod waits;

pub use asked::Planner;
pub use error::{Counterexample, KeptError, PlanError};
pub use kept::Kept;
pub use plan::{Fallback, Plan, Proof, Proved, Round, Smps, Write};
pub use rebalance::{Balance, Rebalance};
pub use request::{LatePolicy, Method, Move, UpdateOrder};
