//! The study of migrations of the vSwitch paper of 2017 (section 7.2, table 4, figure 8): virtual machines migrate one after the
//! other in six fat-trees, tables are changed as little as a method allows, and after each tenth of the migrations the bandwidth
//! that is left is compared with that of a fresh routing.
//!
//! The paper's simulator is described in Tasoulas' thesis of 2017, section 2.5.3. Where neither says how, this module chooses:
//!
//! - a random start draws as many virtual functions as there are machines;
//! - *grouping* has two groups, fills hosts from the left, and moves what is in the way to the rightmost free function;
//! - *to-uniform* moves a surplus machine of the leftmost host that has too many to the leftmost host that has too few.
//!
//! Virtual machines have dynamic LIDs, and take over the rows of the physical function where they arrive.

mod case;
mod claims;
mod pattern;
mod placement;
mod report;
mod walk;

pub use case::{Case, OCCUPANCIES, Pattern, Start, TREES, Tree, UnknownTree, VFS, cases};
pub use claims::Repeated;
pub use pattern::{Migration, migrations};
pub use placement::Placement;
pub use report::{Report, Study};
pub use walk::{CaseResult, Migrated, StudyError, StudyOptions, Tenth, run};
