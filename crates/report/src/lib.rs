// SPDX-License-Identifier: Apache-2.0
//! What a person or a program gets to see of a verdict or a comparison: terminal, JSON, HTML.
//!
//! `views` turn a verdict into sections, `compared` a comparison, `formats` draw sections. A format never looks at what a
//! section is about, and a view never knows who draws it.

pub mod bisect;
pub mod compared;
pub mod flame;
pub mod formats;
pub mod host;
pub mod load;
pub mod numbers;
pub mod printable;
pub mod section;
pub mod views;

use compared::Compared;
use section::Section;
use views::Material;

/// The whole report of a verdict. A comparison stands between what was found and what it was found in.
#[must_use]
pub fn sections(material: &Material<'_>, compared: Option<&Compared<'_>>) -> Vec<Section> {
    let [found, found_in] = views::sections(material);
    [found, compared.map(compared::sections_of_verdict).unwrap_or_default(), found_in].concat()
}
