//! The paper's printed values.

use weft_routing::quality::Pattern;

/// The least, the mean and the greatest.
pub(crate) type Three = [f64; 3];

/// A row of table 4: the pattern, and the delay of pFTree and of pFTree-Ext.
pub(crate) type Delays = (Pattern, [Three; 2]);

/// Table 4, by topology. The paper prints 64, 128 and 256 nodes.
pub(crate) const TABLE_4: [[Delays; 5]; 3] = [
    [
        (Pattern::Bisect, [[1.0, 99.9, 111.0], [1.0, 2.0, 4.0]]),
        (Pattern::BisectFbSym, [[61.0, 106.6, 112.0], [1.0, 2.6, 4.0]]),
        (Pattern::Gather, [[31.0, 66.2, 112.0], [31.0, 31.0, 31.0]]),
        (Pattern::Scatter, [[0.0, 29.2, 113.0], [0.0, 15.6, 31.0]]),
        (Pattern::AllToAll, [[96.0, 122.4, 128.0], [30.0, 30.0, 30.0]]),
    ],
    [
        (Pattern::Bisect, [[126.0, 275.8, 291.0], [1.0, 2.2, 5.0]]),
        (Pattern::BisectFbSym, [[251.0, 284.5, 293.0], [2.0, 2.9, 5.0]]),
        (Pattern::Gather, [[78.0, 204.8, 294.0], [47.0, 47.0, 47.0]]),
        (Pattern::Scatter, [[0.0, 80.5, 293.0], [0.0, 26.8, 47.0]]),
        (Pattern::AllToAll, [[291.0, 309.8, 318.0], [46.0, 46.0, 46.0]]),
    ],
    [
        (Pattern::Bisect, [[241.0, 509.3, 649.0], [1.0, 2.5, 4.0]]),
        (Pattern::BisectFbSym, [[386.0, 551.9, 649.0], [3.0, 3.6, 6.0]]),
        (Pattern::Gather, [[80.0, 254.9, 560.0], [63.0, 63.0, 63.0]]),
        (Pattern::Scatter, [[0.0, 131.3, 442.0], [0.0, 34.0, 63.0]]),
        (Pattern::AllToAll, [[480.0, 593.3, 656.0], [110.0, 111.2, 112.0]]),
    ],
];

/// `1 / 99.9 / 111`
pub(crate) fn three([least, mean, greatest]: Three) -> String {
    format!("{least} / {mean} / {greatest}")
}
