//! A rank that fails: every other one learns of it, and none hangs.

use thinwire_collective::{CollectiveError, Settings, memory};
use thinwire_train::model::Shard;
use thinwire_train::tensor_parallel::TensorGroup;

use crate::support::{architectures, part, share, stages, train};

#[test]
fn a_value_that_is_not_finite_is_told_on_every_rank() {
    let arch = &architectures()[4];
    let errors = share(arch, 3, "exact", 1, |mut stages, group| {
        if group.rank() == 1 {
            let params = stages[0].part().params().clone();
            let name = "model.layers.1.mlp.down_proj.weight";
            let broken = stages[0].part_mut().params_mut().iter_mut().find(|p| p.name == name).unwrap();
            broken.value = params.upload(vec![f32::INFINITY; broken.len()]);
        }
        // Forward and backward passes come to their ends.
        train(&mut stages);
        group.check().unwrap_err()
    });
    assert!(matches!(errors[1], CollectiveError::NonFinite { rank: 1, .. }), "{}", errors[1]);
    for other in [0, 2] {
        let error = errors[other].to_string();
        assert!(error.contains("of the tensor of rank 1 is"), "{error}");
    }
}

#[test]
fn a_rank_that_is_gone_is_named() {
    let arch = &architectures()[4];
    let errors = share(arch, 3, "echo:bits=4,group=16", 1, |mut stages, group| {
        if group.rank() == 2 {
            return None;
        }
        train(&mut stages);
        Some(group.check().unwrap_err().to_string())
    });
    for error in errors.into_iter().flatten() {
        assert!(error.contains("rank 2 has left the group"), "{error}");
    }
}

#[test]
#[should_panic(expected = "rank and ranks of a shard")]
fn a_share_joins_its_own_rank() {
    let arch = &architectures()[4];
    let shards = Shard::all(arch, 2).unwrap();
    let first = memory::group(2, &Settings::default()).unwrap().swap_remove(0);
    let group = TensorGroup::new(first, "exact".parse().unwrap());
    let _ = part(arch, &stages(arch, 1)[0], shards[1]).join(&group);
}
