//! What is restored is what was written, to the bit, however the units are grouped.

use std::fs;

use safetensors::{Dtype, SafeTensors};
use thinwire_train::checkpoint::{
    FileEntry, Manifest, Results, available, commit, latest, restore_weights, step_folder, write_units,
};
use thinwire_train::config::Family;
use thinwire_train::model::Architecture;

use super::support::{
    Stage, THREE, WHOLE, architecture, bits, checkpoint, facts, names, trained, units, write,
};

#[test]
fn any_grouping_restores_into_any_other() {
    for family in [Family::Gpt2, Family::Llama] {
        for tied in [true, false] {
            let arch = Architecture { tied, ..architecture(family) };
            for (from, into) in [(WHOLE, THREE), (THREE, WHOLE), (THREE, &["embed", "0-2", "head"])] {
                let dir = tempfile::tempdir().unwrap();
                let written = trained(&arch, from, 3);
                write(dir.path(), 3, &written, &facts(&arch, from));
                let mut restored: Vec<Stage> =
                    units(into).iter().map(|units| Stage::new(&arch, units, 1)).collect();
                for stage in &mut restored {
                    stage.restore(dir.path(), 3, &facts(&arch, into)).unwrap();
                }
                assert_eq!(
                    bits(&written),
                    bits(&restored),
                    "{family:?}, tied: {tied}, {from:?} into {into:?}"
                );
                // and they go on alike
                for stage in &mut restored {
                    stage.update(4);
                }
                assert_eq!(bits(&trained(&arch, from, 4)), bits(&restored));
            }
        }
    }
}

#[test]
fn a_run_without_an_update_is_restored_without_moments() {
    let dir = tempfile::tempdir().unwrap();
    let arch = architecture(Family::Gpt2);
    let fresh = trained(&arch, WHOLE, 0);
    write(dir.path(), 0, &fresh, &facts(&arch, WHOLE));
    let mut later = trained(&arch, WHOLE, 2);
    later[0].restore(dir.path(), 0, &facts(&arch, WHOLE)).unwrap();
    assert!(later[0].optimizer.moments(0).is_none());
    assert_eq!(bits(&fresh), bits(&later));
}

#[test]
fn every_value_keeps_its_bits() {
    let dir = tempfile::tempdir().unwrap();
    let arch = architecture(Family::Gpt2);
    let mut stages = trained(&arch, WHOLE, 1);
    let special =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE, 1e-45, f32::MAX, -f32::NAN];
    let first = stages[0].part.params().iter().next().unwrap();
    let values = special.iter().copied().cycle().take(first.len()).collect();
    let tensor = stages[0].part.params().upload(values);
    stages[0].part.params_mut().iter_mut().next().unwrap().value = tensor;
    write(dir.path(), 1, &stages, &facts(&arch, WHOLE));
    let mut restored = trained(&arch, WHOLE, 0);
    restored[0].restore(dir.path(), 1, &facts(&arch, WHOLE)).unwrap();
    assert_eq!(bits(&stages), bits(&restored));
}

#[test]
fn equal_state_gives_equal_files() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let arch = architecture(Family::Llama);
    let whole = write(one.path(), 5, &trained(&arch, WHOLE, 2), &facts(&arch, WHOLE));
    let split = write(other.path(), 5, &trained(&arch, THREE, 2), &facts(&arch, THREE));
    assert_eq!(whole.files, split.files);
}

#[test]
fn stages_with_disks_of_their_own_merge_into_a_whole() {
    let arch = architecture(Family::Llama);
    let facts = facts(&arch, THREE);
    let written = trained(&arch, THREE, 2);
    let disks: Vec<_> = written.iter().map(|_| tempfile::tempdir().unwrap()).collect();
    let files: Vec<FileEntry> = written
        .iter()
        .zip(&disks)
        .flat_map(|(stage, disk)| write_units(disk.path(), 2, &stage.part, &stage.optimizer, &[]).unwrap())
        .collect();
    let manifest = Manifest::new(2, Results::default(), facts.clone(), files).unwrap();
    for disk in &disks {
        commit(disk.path(), &manifest).unwrap();
    }

    let whole = &units(WHOLE)[0];
    for (disk, own) in disks.iter().zip(units(THREE)) {
        assert_eq!(available(disk.path(), &own).unwrap(), [2]);
        assert_eq!(available(disk.path(), whole).unwrap(), [0; 0]);
    }
    let merged = tempfile::tempdir().unwrap();
    let folder = step_folder(merged.path(), 2);
    fs::create_dir(&folder).unwrap();
    for disk in &disks {
        let source = step_folder(disk.path(), 2);
        for name in names(&source) {
            fs::copy(source.join(&name), folder.join(&name)).unwrap();
        }
    }
    assert_eq!(available(merged.path(), whole).unwrap(), [2]);
    let mut restored = trained(&arch, WHOLE, 0);
    restored[0].restore(merged.path(), 2, &facts).unwrap();
    assert_eq!(bits(&written), bits(&restored));
}

#[test]
fn a_step_can_be_written_again() {
    let (dir, _, facts) = checkpoint();
    let other = trained(&facts.architecture, WHOLE, 5);
    let files = write_units(dir.path(), 2, &other[0].part, &other[0].optimizer, &[]).unwrap();
    assert!(latest(dir.path()).unwrap().is_none(), "the old manifest names files that are gone");
    commit(dir.path(), &Manifest::new(2, Results::default(), facts.clone(), files).unwrap()).unwrap();
    let mut restored = trained(&facts.architecture, WHOLE, 0);
    restored[0].restore(dir.path(), 2, &facts).unwrap();
    assert_eq!(bits(&other), bits(&restored));
}

#[test]
fn weights_alone_are_restored_without_the_optimizer_files() {
    let (dir, written, facts) = checkpoint();
    let folder = step_folder(dir.path(), 2);
    names(&folder).iter().filter(|name| name.contains(".optimizer.")).for_each(|name| {
        fs::remove_file(folder.join(name)).unwrap();
    });
    let mut part = trained(&facts.architecture, WHOLE, 0).remove(0).part;
    let manifest = restore_weights(dir.path(), 2, &mut part).unwrap();
    assert_eq!(manifest.run, facts);
    let values = |part: &thinwire_train::model::Part| -> Vec<_> {
        part.params().iter().map(|p| p.value.clone().into_data().try_to_vec::<f32>().unwrap()).collect()
    };
    assert_eq!(values(&written[0].part), values(&part));
}

#[test]
fn files_are_plain_safetensors_with_known_names() {
    let (dir, stages, facts) = checkpoint();
    let manifest = latest(dir.path()).unwrap().unwrap();
    assert_eq!((manifest.step, &manifest.run, manifest.files.len()), (2, &facts, 10));
    let mut found = Vec::new();
    for file in &manifest.files {
        let bytes = fs::read(step_folder(dir.path(), 2).join(&file.name)).unwrap();
        assert_eq!(bytes.len() as u64, file.bytes);
        let (header, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        assert!(header.is_multiple_of(8), "{}: values are aligned", file.name);
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(tensors.len(), file.tensors);
        let entries = metadata.metadata().as_ref().unwrap();
        let optimizer = file.name.ends_with(".optimizer.safetensors");
        let (key, value) = if optimizer { ("updates", "2") } else { ("format", "pt") };
        assert_eq!(entries.get(key).map(String::as_str), Some(value), "{}", file.name);
        found.extend(tensors.iter().map(|(name, view)| {
            assert_eq!(view.dtype(), Dtype::F32);
            (name.to_owned(), view.shape().to_vec())
        }));
    }
    let parameters = stages[0].part.params().iter();
    let mut expected: Vec<_> = parameters
        .flat_map(|p| {
            ["", ".exp_avg", ".exp_avg_sq"].map(|suffix| (format!("{}{suffix}", p.name), p.shape.clone()))
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(found.iter().any(|(name, _)| name == "lm_head.weight"), "a tied head is written too");
}
