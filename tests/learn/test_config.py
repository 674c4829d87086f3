import pytest

from prefixguard.errors import ConfigError
from prefixguard.learn import TrainConfig, read_toml


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"backend": "gpt"}, r"backend 'gpt': choose one of gru, transformer, fsm, gbdt, blend\."),
        ({"device": "tpu"}, r"device 'tpu': choose auto, cpu or cuda\."),
        ({"seed": 2**31}, r"seed = 2147483648: a whole number of at most 2147483647 is needed\."),
        ({"epochs": 0}, r"epochs = 0: a whole number of at least 1 is needed\."),
        ({"epochs": True}, r"epochs = True: a whole number of at least 1 is needed\."),
        ({"learning_rate": "fast"}, r"learning_rate = 'fast': a number between 1e-06 and 1\.0 is needed\."),
        ({"budget": 0.9}, r"budget = 0\.9: a number between 0\.001 and 0\.5 is needed\."),
    ],
)
def test_options_out_of_range_say_what_is_needed(options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        TrainConfig(**options)


def test_unknown_options_are_named_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"prefixguard\.toml: unknown option 'epoch'\. Known: .*epochs"):
        TrainConfig.from_mapping({"epoch": 3}, "prefixguard.toml")


def test_toml_that_does_not_parse_names_file_and_line(tmp_path):
    path = tmp_path / "prefixguard.toml"
    path.write_text("[train]\nepochs = \n")
    with pytest.raises(ConfigError, match=r"prefixguard\.toml: not readable as TOML \(.*line 2"):
        read_toml(path)
