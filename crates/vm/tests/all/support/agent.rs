//! An agent with slots, by the rules that `weft_vm`'s `agent.rs` states.

use std::collections::BTreeMap;

use weft_vm::{
    Act, Adapter, Command, Content, Deed, HostName, HostReport, Image, Occupant, Outcome, PortIdentity,
    Refusal, SlotReport, VmName,
};
use weft_wire::{Guid, Lid, PortNum};

/// What a virtual machine has lived through: it grows each time that it starts or resumes. One that was forgotten is another than
/// the next one of its name.
pub(crate) type Lives = BTreeMap<(VmName, Guid), u64>;

#[derive(Clone, Debug)]
pub(crate) struct SlotModel {
    pub(crate) configured: PortIdentity,
    pub(crate) content: Content,
    pub(crate) epoch: u64,
    /// The life that is in it, running or frozen.
    pub(crate) life: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) name: HostName,
    pub(crate) adapter: Adapter,
    pub(crate) incarnation: u64,
    pub(crate) alive: bool,
    pub(crate) generation: u64,
    pub(crate) slots: BTreeMap<u8, SlotModel>,
    pub(crate) refused: u64,
    /// Its ports lack a partition of every machine that arrives, and never get it.
    pub(crate) lacks_partition: bool,
    /// A port that comes up has no LID at first: a sweep gives it one.
    pub(crate) waits_for_lids: bool,
}

impl Agent {
    pub(crate) fn new(number: u8, vfs: u8) -> Self {
        let port = Guid(0x1000 + u64::from(number));
        let adapter = Adapter {
            description: format!("host {number}"),
            system_guid: Guid(0x2000 + u64::from(number)),
            port_guid: port,
            port_num: PortNum(1),
        };
        let slot = |vf: u8| {
            let guid = Guid(port.0 + (u64::from(vf) << 32));
            let lid = Lid(u16::from(number) * 16 + u16::from(vf) + 100);
            let configured = PortIdentity { node_guid: guid, port_guid: guid, lid };
            (vf, SlotModel { configured, content: Content::Bare, epoch: 0, life: 0 })
        };
        let slots = (1..=vfs).map(slot).collect();
        let name = format!("host-{number}").parse().unwrap();
        Self {
            name,
            adapter,
            incarnation: 1,
            alive: true,
            generation: 0,
            slots,
            refused: 0,
            lacks_partition: false,
            waits_for_lids: false,
        }
    }

    /// Another process takes the place of one that has died: nothing is plugged in.
    pub(crate) fn restart(&mut self, incarnation: u64) {
        (self.incarnation, self.alive, self.generation) = (incarnation, true, 0);
        for slot in self.slots.values_mut() {
            (slot.content, slot.epoch, slot.life) = (Content::Bare, 0, 0);
        }
    }

    pub(crate) fn handle(&mut self, command: &Command, lives: &mut Lives) -> Result<Outcome, String> {
        let only_asks = command.act == Act::Inspect && command.generation == 0;
        if command.generation < self.generation && !only_asks {
            return Ok(Outcome::Refused(Refusal::Generation(self.generation)));
        }
        self.generation = self.generation.max(command.generation);
        match &command.act {
            Act::Inspect => Ok(Outcome::Report(Box::new(self.report()))),
            Act::Slot { incarnation, .. } if *incarnation != self.incarnation => {
                self.refused += 1;
                Ok(Outcome::Refused(Refusal::Incarnation(self.incarnation)))
            }
            Act::Slot { vf, epoch, deed, .. } => {
                let Some(slot) = self.slots.get_mut(vf) else {
                    return Ok(Outcome::Refused(Refusal::Words(format!("there is no vf{vf}"))));
                };
                if let (Content::Imported(_), Deed::Activate(_)) = (&slot.content, deed)
                    && self.lacks_partition
                {
                    return words("the port's table does not have partition 0x8001");
                }
                let outcome = slot.handle(*epoch, deed, lives)?;
                let came = slot.epoch == *epoch && matches!(deed, Deed::Activate(_));
                if let Content::Running(occupant) = &mut slot.content
                    && came
                    && self.waits_for_lids
                {
                    occupant.identity.port.lid = Lid(0);
                    return Ok(Outcome::Done(slot.content.clone()));
                }
                self.refused += u64::from(matches!(outcome, Outcome::Refused(_)));
                Ok(outcome)
            }
        }
    }

    /// The LIDs of its configuration.
    pub(crate) fn lids(&self) -> impl Iterator<Item = (Guid, Lid)> {
        self.slots.values().map(|slot| (slot.configured.port_guid, slot.configured.lid))
    }

    fn report(&self) -> HostReport {
        let slots = self.slots.iter().map(|(vf, slot)| SlotReport {
            vf: *vf,
            configured: slot.configured,
            epoch: slot.epoch,
            content: slot.content.clone(),
        });
        HostReport {
            incarnation: self.incarnation,
            generation: self.generation,
            adapter: self.adapter.clone(),
            slots: slots.collect(),
        }
    }
}

fn words(text: &str) -> Result<Outcome, String> {
    Ok(Outcome::Refused(Refusal::Words(text.to_owned())))
}

/// An image of this model: the life, and the epoch of the freeze.
fn image(life: u64, epoch: u64) -> Image {
    let bytes: Vec<u8> = life.to_le_bytes().into_iter().chain(epoch.to_le_bytes()).collect();
    bytes.into()
}

fn open(image: &Image) -> Option<(u64, u64)> {
    let (life, epoch) = image.0.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*life), u64::from_le_bytes(epoch.try_into().ok()?)))
}

impl SlotModel {
    fn handle(&mut self, epoch: u64, deed: &Deed, lives: &mut Lives) -> Result<Outcome, String> {
        if epoch < self.epoch {
            return Ok(Outcome::Refused(Refusal::Epoch(self.epoch)));
        }
        if let Deed::Export { vm, .. } = deed {
            return match &self.content {
                Content::Frozen(occupant) if occupant.vm == *vm && epoch == self.epoch => {
                    Ok(Outcome::Image(image(self.life, self.epoch)))
                }
                _ => words("it is not frozen here"),
            };
        }
        if epoch == self.epoch {
            return Ok(Outcome::Done(self.content.clone()));
        }
        let content = match (deed, self.content.clone()) {
            (Deed::Create(occupant), content) if content.is_free() => {
                self.begin(occupant, None, lives)?;
                Content::Running(occupant.clone())
            }
            (Deed::Reserve(vm), content) if content.is_free() => Content::Reserved(vm.clone()),
            (Deed::Freeze(vm), Content::Running(occupant)) if occupant.vm == *vm => Content::Frozen(occupant),
            (Deed::Import { occupant, from_epoch, image }, Content::Reserved(vm)) if vm == occupant.vm => {
                let Some((life, frozen)) = open(image) else { return words("the image is cut short") };
                if frozen != *from_epoch {
                    return words("the image is of another epoch");
                }
                self.life = life;
                Content::Imported(occupant.clone())
            }
            (Deed::Activate(vm), Content::Imported(occupant) | Content::Frozen(occupant))
                if occupant.vm == *vm =>
            {
                self.begin(&occupant, Some(self.life), lives)?;
                Content::Running(occupant)
            }
            (Deed::Activate(vm), Content::Running(occupant)) if occupant.vm == *vm => {
                Content::Running(occupant)
            }
            (Deed::Clear(Some(port)), _) => Content::Spare(*port),
            (Deed::Clear(None), _) => Content::Bare,
            (deed, content) => return words(&format!("{deed:?} does not fit {content:?}")),
        };
        (self.content, self.epoch) = (content, epoch);
        Ok(Outcome::Done(self.content.clone()))
    }

    /// A virtual machine starts or resumes: from where it was when it was last frozen, and from nowhere else.
    fn begin(&mut self, occupant: &Occupant, from: Option<u64>, lives: &mut Lives) -> Result<(), String> {
        let lived = lives.entry((occupant.vm.clone(), occupant.identity.port.port_guid)).or_insert(0);
        if from.is_some_and(|life| life != *lived) {
            return Err(format!("{} resumes life {from:?}, and has lived {lived}", occupant.vm));
        }
        *lived += 1;
        self.life = *lived;
        Ok(())
    }
}
