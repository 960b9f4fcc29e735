//! The share of a link that a lane does not use: lent or kept.

weft_wire::named! {
    /// A lane's share of a link is its weight in the low table of VL arbitration over the weights of all lanes there (IBA 7.6.9).
    /// An arbiter that holds lanes to their shares lets a link stand idle.
    #[derive(Default)]
    pub enum LaneShare {
        /// Others may use it, as the architecture has it: a link is idle only while no lane can send.
        #[default]
        Lent = "lent",
        /// Kept while packets of the lane stand in line, also for credit. The share of a lane without packets is lent.
        Waiting = "waiting",
        /// Always kept: no lane ever has more than its share.
        Fixed = "fixed",
    }
}
