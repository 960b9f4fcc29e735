//! Prometheus metrics of the VM manager.

use weft_bundle::names::VMM;
use weft_metrics::Page;

use crate::vmm::figures::VmmFigures;

/// All of it.
pub(crate) fn page(figures: &VmmFigures) -> Page {
    let mut page = Page::of(VMM, env!("CARGO_PKG_VERSION"));
    let census = &figures.census;
    for (name, help, value) in [
        ("attached", "Whether the VM manager has its port", u64::from(figures.attached)),
        ("stopped", "Whether it does nothing any more", u64::from(figures.stopped.is_some())),
        ("hosts", "Hosts with slots", census.hosts),
        ("hosts_ready", "Hosts whose agents answer", census.hosts_ready),
        ("slots", "Slots that agents have told of", census.slots),
        ("slots_free", "Slots that a virtual machine can come to", census.slots_free),
        ("requests_queued", "Requests that wait for their turn", census.queued),
        ("tasks", "Creations, removals and moves under way", census.under_way),
        ("journal_bytes", "Size of the journal", figures.journal_bytes),
        ("generation", "Its generation: agents refuse earlier ones", census.generation),
    ] {
        page.gauge(&format!("weft_vmm_{name}"), help).add(&[], value as f64);
    }
    let mut family = page.gauge("weft_vmm_vms", "Virtual machines by state");
    for (state, count) in figures.states() {
        family.add(&[("state", &state)], count as f64);
    }
    for (name, help, value) in figures.counted() {
        page.counter(&format!("weft_vmm_{name}_total"), help).count(&[], value);
    }
    page
}
