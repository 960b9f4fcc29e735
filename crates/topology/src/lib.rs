//! The cabling of a fabric: graph, ibnetdiscover text, generators, comparison
