//! pFTree and its extensions: the papers' figures, isolation, weights, and trees that have lost cables.

mod common;
mod figures;
mod isolation;
mod machines;
mod paper;
mod phases;
mod weights;
