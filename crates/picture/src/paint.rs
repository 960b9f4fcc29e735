//! Colours of cables: steps of one scale that people who do not tell red from green can read, in the light and in the dark.

/// Steps of a scale.
pub const STEPS: usize = 5;

/// What the cables of a picture show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Paint {
    /// Nothing.
    #[default]
    Plain,
    /// A share of the scale's end, from 0 to 1.
    Share(f64),
    /// It does not carry packets.
    Down,
}

impl Paint {
    /// The class that a style gives a colour.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Plain => "plain".to_owned(),
            Self::Share(share) => {
                format!("s{}", ((share.clamp(0.0, 1.0) * STEPS as f64) as usize).min(STEPS - 1))
            }
            Self::Down => "down".to_owned(),
        }
    }

    /// The one of two that matters more: what is down, then what is most.
    #[must_use]
    pub fn more(self, other: Self) -> Self {
        match (self, other) {
            (Self::Down, _) | (_, Self::Down) => Self::Down,
            (Self::Share(one), Self::Share(other)) => Self::Share(one.max(other)),
            (Self::Plain, other) => other,
            (own, Self::Plain) => own,
        }
    }
}

/// Viridis, from the least to the most (van der Walt and Smith, 2015); the dark has its lighter part.
pub(crate) const STYLE: &str = "<style>\
text{font:11px system-ui,sans-serif;fill:#222}.title{font-size:15px;font-weight:600}\
.paper{fill:#fff}.switch{fill:#e8edf3;stroke:#3b4a5a}.host{fill:#fff;stroke:#3b4a5a}\
.count{font-size:9px}.label{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}.many line{stroke-opacity:.45}line{stroke-linecap:round}\
.plain{stroke:#8a97a5;fill:#8a97a5}.s0{stroke:#b8c4cf;fill:#b8c4cf}.s1{stroke:#35b779;fill:#35b779}.s2{stroke:#21918c;fill:#21918c}\
.s3{stroke:#31688e;fill:#31688e}.s4{stroke:#440154;fill:#440154}.down{stroke:#d55e00;fill:#d55e00;stroke-dasharray:3 3}\
.route{stroke:#e69f00;fill:none;stroke-width:5;stroke-opacity:.75}.circle{stroke:#cc79a7;fill:none;stroke-width:7;stroke-opacity:.8;stroke-dasharray:9 5;stroke-linecap:butt}\
.g0,.g1,.g2,.g3{fill:none;stroke-width:2.4}.g0{stroke:#0072b2}.g1{stroke:#d55e00;stroke-dasharray:5 2}.g2{stroke:#009e73;stroke-dasharray:2 2}.g3{stroke:#e69f00;stroke-dasharray:7 2 2 2}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.label{stroke:#161b22}.paper{fill:#161b22}.switch{fill:#2a3441;stroke:#9fb0c2}.host{fill:#161b22;stroke:#9fb0c2}\
.plain{stroke:#6b7886;fill:#6b7886}.s0{stroke:#3d4753;fill:#3d4753}.s1{stroke:#31688e;fill:#31688e}.s2{stroke:#21918c;fill:#21918c}\
.s3{stroke:#5ec962;fill:#5ec962}.s4{stroke:#fde725;fill:#fde725}.g0{stroke:#56b4e9}}\
</style>";
