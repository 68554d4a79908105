"""Tasks from local copies: each reader on small files of its format, and on damaged ones."""

import gzip
import pickle
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

from refssm.training.loop import Plan
from refssm.training.setup import Setup
from refssm.training.tasks import TASKS, TrainingError
from refssm.training.tasks.catalog import sizes_of
from refssm.training.tasks.local import LOCAL
from refssm.training.tasks.local import images as readers

PIXELS = np.arange(3072, dtype=np.uint8).reshape(1, 3072) % 251


def lists(folder):
    rows = ["Source\tTarget", "( ( [MAX 2 ) ( [MIN 4 7 ] ) 0 ] )\t4", "[SM 9 9 ]\t8"]
    for part in ("train", "test"):
        (folder / f"basic_{part}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def reviews(folder):
    for part in ("train", "test"):
        for kind, text in (("pos", "good é"), ("neg", "bad")):
            (folder / part / kind).mkdir(parents=True)
            (folder / part / kind / "0_9.txt").write_text(text, encoding="utf-8")


def papers(folder):
    rows = "1.0\tP1\tP2\tone text\tother\n0\tP3\tP4\ta\tb\n"
    for part in ("train", "test"):
        (folder / f"new_aan_pairs.{part}.tsv").write_text(rows, encoding="utf-8")


FILES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def images(folder):
    for i, file in enumerate(FILES):
        (folder / f"{file}.bin").write_bytes(bytes([i]) + PIXELS.tobytes())


def pickles(folder):
    for i, file in enumerate(FILES):
        batch = {b"data": PIXELS, b"labels": [i], b"batch_label": b"one of six"}
        (folder / file).write_bytes(pickle.dumps(batch, protocol=2))


def png(image):
    """The bytes of an image of 8 bits, gray or with three colours."""
    file = BytesIO()
    Image.fromarray(image.astype(np.uint8)).save(file, "png")
    return file.getvalue()


def paths(folder):
    (folder / "metadata").mkdir()
    (folder / "imgs/0").mkdir(parents=True)
    lines = []
    for i in range(4):
        image = np.full((3, 3), 255 * (i % 2), np.uint8)
        (folder / f"imgs/0/sample_{i}.png").write_bytes(png(image))
        lines.append(f"imgs/0 sample_{i}.png {i} {i % 2} 6 0.5")
    (folder / "metadata/0.npy").write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    np.save(folder / "metadata/1.npy", np.array([line.split() for line in lines[2:]]))


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def handwritten(folder):
    pixels = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 256
    for prefix in ("train", "t10k"):
        (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels)))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(np.array([3, 9])))


def words(folder):
    for word, level in (("go", 8192), ("stop", -16384), ("_background_noise_", 1)):
        (folder / word).mkdir()
        for i in range(3):
            sound = np.full(40 + i, level, np.int16)
            wavfile.write(folder / word / f"{i}.wav", 16000, sound)
    (folder / "testing_list.txt").write_text("go/0.wav\nstop/0.wav\n", encoding="utf-8")
    (folder / "validation_list.txt").write_text("go/1.wav\n", encoding="utf-8")


MAKERS = {
    "lra-listops": (lists, {"l": 12}),
    "lra-text": (reviews, {"l": 6}),
    "lra-retrieval": (papers, {"l": 5}),
    "lra-image": (images, {}),
    "lra-pathfinder": (paths, {}),
    "scifar": (pickles, {}),
    "smnist": (handwritten, {}),
    "speech-commands": (words, {"l": 48, "every": 2}),
}
SHAPES = {  # of the training part, or of a batch of 3, and classes
    "lra-listops": ((2, 12), 10),
    "lra-text": ((2, 6), 2),
    "lra-retrieval": ((2, 11), 2),
    "lra-image": ((5, 1024, 1), 10),
    "lra-pathfinder": ((3, 9, 1), 2),
    "scifar": ((5, 1024, 3), 10),
    "smnist": ((2, 784, 1), 10),
    "speech-commands": ((3, 24, 1), 2),
}
EACH = pytest.mark.parametrize("name", LOCAL)


def made(name, folder):
    fill, sizes = MAKERS[name]
    fill(folder)
    return LOCAL[name](folder, **sizes)


@EACH
def test_each_data_set_is_read_in_its_own_format(name, tmp_path):
    task = made(name, tmp_path)
    shape, classes = SHAPES[name]
    examples = task.train if task.draw is None else task.batch(np.random.default_rng(0), 3)
    assert (examples.signals.shape, task.classes) == (shape, classes)
    if task.draw is None:
        assert (
            task.marks["chance"] == (task.test_labels == np.bincount(task.labels).argmax()).mean()
        )


@EACH
def test_a_task_of_local_files_is_trained_as_any_other(name, tmp_path):
    fill, sizes = MAKERS[name]
    fill(tmp_path)
    how = {"h": 4, "depth": 1, "norm": "layer", "sizes": {"n": 2}, "ops": "reference"}
    plan = Plan(steps=2, batch=2, warm_up=0)
    setup = Setup(name, "s5", plan=plan, task_sizes=sizes, data=str(tmp_path), **how)
    trainer = setup.trainer()
    state, facts = trainer.step(trainer.start())
    assert np.isfinite(facts["loss"])
    assert set(trainer.test(state)) == {"test_loss", "test_accuracy"}


def test_no_name_is_used_twice():
    assert not {*TASKS} & {*LOCAL}
    assert {*MAKERS} == {*SHAPES} == {*LOCAL}


def test_lists_are_the_symbols_of_listops_with_blanks_before(tmp_path):
    task = made("lra-listops", tmp_path)
    assert task.signals.tolist() == [
        [15, 15, 15, 15, 11, 2, 10, 4, 7, 14, 0, 14],  # blanks, [MAX 2 [MIN 4 7 ] 0 ]
        [15, 15, 15, 15, 15, 15, 15, 15, 13, 9, 9, 14],
    ]
    assert task.labels.tolist() == [4, 8]


def test_texts_are_bytes_cut_at_the_end_and_filled_before(tmp_path):
    task = made("lra-text", tmp_path)
    bad, good = [257, 257, 257, *b"bad"], [*b"good ", 0xC3]
    assert (task.signals.tolist(), task.labels.tolist()) == ([bad, good], [0, 1])


def test_two_papers_have_a_mark_between(tmp_path):
    task = made("lra-retrieval", tmp_path)
    first = [*b"one t", 256, *b"other"]
    second = [257] * 8 + [ord("a"), 256, ord("b")]
    assert (task.signals.tolist(), task.labels.tolist()) == ([first, second], [1, 0])


@pytest.mark.parametrize("fill", [images, pickles])
def test_colours_are_planes_and_gray_is_their_luma(fill, tmp_path):
    fill(tmp_path)
    task = LOCAL["scifar"](tmp_path)
    planes = PIXELS.reshape(3, 1024) / 127.5 - 1
    assert np.array_equal(task.signals[0], planes.T.astype(np.float32))
    assert (task.labels.tolist(), task.test_labels.tolist()) == ([0, 1, 2, 3, 4], [5])
    gray = LOCAL["lra-image"](tmp_path).signals[0, :, 0]
    # three products of numbers up to 1 in double precision, after one rounding in single
    assert np.abs(gray - np.array([0.299, 0.587, 0.114]) @ planes).max() <= 3 * 2.0**-24


def test_a_pickle_that_names_code_is_refused_and_not_run(tmp_path):
    pickles(tmp_path)

    class Code:
        def __reduce__(self):
            return (open, (str(tmp_path / "written"), "w"))

    (tmp_path / "data_batch_2").write_bytes(pickle.dumps({b"data": Code()}, protocol=2))
    with pytest.raises(TrainingError, match=r"data_batch_2: damaged \(it names (_?io|__builtin__)"):
        LOCAL["scifar"](tmp_path)
    assert not (tmp_path / "written").exists()


def test_digits_of_idx_files_are_rows_of_pixels(tmp_path):
    task = made("smnist", tmp_path)
    wanted = (np.arange(784) % 256 / 127.5 - 1).astype(np.float32)
    assert np.array_equal(task.signals[0, :, 0], wanted)
    assert task.labels.tolist() == [3, 9]


@pytest.mark.parametrize("kind", [0, 2])
def test_an_image_is_gray_from_minus_1_to_1(tmp_path, kind):
    image = np.random.default_rng(kind).integers(0, 256, (5, 4, 3) if kind else (5, 4))
    (tmp_path / "a.png").write_bytes(png(image))
    gray = (readers._image(tmp_path / "a.png") + 1) * 127.5
    wanted = image @ np.array([0.299, 0.587, 0.114]) if kind else image
    # colours are rounded to a whole number; then two roundings to single precision
    assert np.abs(gray - wanted).max() <= (1 if kind else 0) + 255 * 2.0**-23


def test_without_pillow_pathfinder_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "find_spec", lambda name: None)
    with pytest.raises(TrainingError, match="read by Pillow: pip install pillow"):
        readers._image(tmp_path / "a.png")


def test_every_line_of_pathfinder_is_an_image_with_its_label(tmp_path):
    task = made("lra-pathfinder", tmp_path)
    signals = np.concatenate([task.signals, task.test_signals])
    labels = np.concatenate([task.labels, task.test_labels])
    assert np.array_equal(signals[:, :, 0], np.repeat(2.0 * labels[:, None] - 1, 9, 1))
    assert sorted(labels) == [0, 0, 1, 1]


def test_the_test_of_spoken_words_is_its_list_and_validation_is_left_out(tmp_path):
    task = made("speech-commands", tmp_path)
    assert task.test_labels.tolist() == [0, 1]
    levels = {0: 0.25, 1: -0.5}
    drawn = task.batch(np.random.default_rng(1), 200)
    ends = set()
    for signal, label in zip(drawn.signals[..., 0], drawn.labels, strict=True):
        assert set(signal.tolist()) <= {levels[label], 0}
        ends.add((int(label), int((signal != 0).sum())))
    assert ends == {(0, 21), (1, 21), (1, 21)}  # 41 and 42 samples of 48, every second: 21


DAMAGED = {
    "lra-listops": {
        "basic_train.tsv": (
            b"Source\tTarget\n[MAX 2 X ]\t2\n",
            "line 2 has 'X'; wanted digits and",
        ),
        "basic_test.tsv": (b"Source\n", "line 1 has 1 columns; wanted a table with"),
    },
    "lra-text": {"train/pos/0_9.txt": (None, "no *.txt; wanted the reviews as files")},
    "lra-retrieval": {
        "new_aan_pairs.test.tsv": (b"2\ta\tb\tc\td\n", "line 1 has the label '2'; wanted five"),
    },
    "lra-image": {"data_batch_3.bin": (b"123", "3 bytes; wanted records of 3073 bytes")},
    "lra-pathfinder": {
        "imgs/0/sample_1.png": (b"GIF89a", "damaged (cannot identify image"),
        "imgs/0/sample_2.png": (None, "No such file or directory; wanted an image"),
        "imgs/0/sample_3.png": (png(np.zeros((3, 3)))[:40], "damaged ("),
        "metadata/1.npy": (b"\x93NUMPY", "damaged"),
        "metadata/0.npy": (b"imgs/0 sample_0.png 0\n", "line 1 is"),
    },
    "scifar": {"test_batch": (b"\x80\x02", "damaged"), "data_batch_1": (None, "No such file")},
    "smnist": {
        "train-images-idx3-ubyte.gz": (b"\x1f\x8b\x08", "damaged"),
        "t10k-labels-idx1-ubyte": (idx(np.array([1])), "1 labels; wanted one for each of 2 images"),
        "train-labels-idx1-ubyte": (idx(np.array([1, 2]))[:-1], "1 entries; wanted 2, as it says"),
    },
    "speech-commands": {
        "go/2.wav": (b"RIFF", "damaged"),
        "testing_list.txt": (b"go/7.wav\n", "not there; wanted each file of testing_list.txt"),
        "validation_list.txt": (b"\xff", "not text in UTF-8; wanted a list with WORD/FILE.wav"),
    },
}


def read(name, folder):
    """All files: some are read when a batch wants them."""
    task = LOCAL[name](folder, **MAKERS[name][1])
    return task.draw and task.draw(np.random.default_rng(0), 50)


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, files in DAMAGED.items() for file in files]
)
def test_a_file_that_is_absent_or_damaged_is_one_sentence_that_names_it(name, file, tmp_path):
    MAKERS[name][0](tmp_path)
    data, sentence = DAMAGED[name][file]
    path = tmp_path / file
    path.unlink() if data is None else path.write_bytes(data)
    with pytest.raises(TrainingError) as raised:
        read(name, tmp_path)
    told = str(raised.value)
    named = path if "testing" not in file else tmp_path / "go/7.wav"
    assert told.startswith(f"{name}: {named}" if data is not None or "txt" not in file else name)
    assert sentence in told
    assert "\n" not in told


@EACH
def test_an_empty_folder_is_one_sentence(name, tmp_path):
    with pytest.raises(TrainingError, match=f"^{name}: {re.escape(str(tmp_path))}.*; wanted "):
        LOCAL[name](tmp_path)


def test_a_list_that_is_too_long_is_refused(tmp_path):
    lists(tmp_path)
    with pytest.raises(TrainingError, match=r"line 2 has 8 symbols; wanted at most l = 7$"):
        LOCAL["lra-listops"](tmp_path, l=7)


def test_files_are_wanted_for_local_tasks_only(tmp_path):
    with pytest.raises(TrainingError, match=r"^smnist: wanted --data FOLDER, the files"):
        Setup("smnist", "s5").trainer()
    with pytest.raises(TrainingError, match=r"^--data x: copying needs no files$"):
        Setup("copying", "s5", data="x").trainer()
    with pytest.raises(TrainingError, match=r"unknown size of lra-text 'n'; wanted one of l$"):
        Setup("lra-text", "s5", data="x", task_sizes={"n": 3}).trainer()


def test_every_local_task_is_on_the_page_with_its_sizes():
    text = (Path(__file__).parents[2] / "docs/training.md").read_text(encoding="utf-8")
    for name in LOCAL:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        sizes = re.findall(r"`(\w+)=(\d+)`", row.split("|")[-2])
        assert {size: int(value) for size, value in sizes} == sizes_of(LOCAL[name])
    assert "Nobody here has run these tasks on\nthe real data." in text
