"""Claims about signatures, against what stands in a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.supervision.rules.signatures import STYLE_BY_LANGUAGE, describe_difference, is_same_interface
from tests.rows import each_row

PYTHON = 'async def handle(self, request: "Request", *rest: int, config: Config | None = None, **more) -> Response:'
TYPED = "handle<T>(request: Request, retries = 3, next?: () => void, ...rest: string[]): Promise<{ ok: boolean }>"
GO = "func (s *Store) Get(ctx context.Context, key, other string, opts ...Option) (map[string]int, error)"
RUST = "pub fn get<'a, K>(&'a mut self, key: &'a K, more: Option<(u8, u8)>) -> Result<V, Error> where K: Hash"
JAVA = '@Get("/x") public static <T> List<T> find(@Valid final Map<String, T> by, int[] at, String... more) throws E'

AGREE = [
    ("python", PYTHON, PYTHON),
    ("python", PYTHON, "handle(request, *rest, config, **more)"),
    ("python", PYTHON, "handle(self, request: Request, *rest, config = None, **more) -> Response"),
    ("python", PYTHON, "`(request, *rest, config, **more)`"),
    ("python", "def handle(a,\n  b,\n):", "def handle(a, b)"),
    ("python", "def handle(a, /, b, *, c):", "handle(a, b, *, c)"),
    ("python", "def handle(sep='a, b', x=(1, 2)):", "handle(sep, x)"),
    ("python", "def handle():", "handle()"),
    ("python", "def handle(public, override: bool, *, final=''):", "handle(public, override: bool, *, final)"),
    ("python", "def handle(a: str = '', b: Annotated[int, N(\n 1,\n),] = 3):", 'handle(a="", b: Annotated[int, N(1)])'),
    ("python", "def handle(a: (\n    int | None\n) = 1) -> (A | B):", "handle(a: int | None = 1) -> A | B"),
    ("rust", "fn handle(mut a: u8)", "handle(a: u8)"),
    ("java", "void handle(final int a)", "handle(int a)"),
    ("typescript", TYPED, "function handle(request: Request, retries, next?, ...rest)"),
    ("typescript", TYPED, TYPED),
    ("typescript", "handle = async (a: number): Promise<void> =>", "const handle = async (a: number) => Promise<void>"),
    ("javascript", "handle = a =>", "handle(a)"),
    ("javascript", "function handle({ a, b }, c)", "handle({a, b}, c)"),
    ("go", GO, "Get(ctx, key, other, opts)"),
    ("go", GO, "Get(ctx context.Context, key string, other string, opts ...Option) (map[string]int, error)"),
    ("go", GO, "func (s *Store) Get(context.Context, string, string, ...Option)"),
    ("go", "func Get(context.Context, string)", "Get(ctx context.Context, key string)"),
    ("rust", RUST, "fn get(&mut self, key: &'a K, more: Option<(u8, u8)>) -> Result<V, Error>"),
    ("rust", RUST, "get(key, more)"),
    ("java", JAVA, "List<T> find(Map<String, T> by, int[] at, String... more)"),
    ("java", JAVA, "find(by, at, more)"),
    ("java", JAVA, "find(Map<String, T>, int[], String...)"),
    ("java", "public Store(String path)", "Store(String path)"),
]
DIFFER = [
    ("python", PYTHON, "handle(request, *rest, config)", "takes 4 parameters, not 3"),
    ("python", PYTHON, "handle(request, *rest, rate_config, **more)", "parameter 3 is config: Config|None = None"),
    ("python", PYTHON, "handle(request, rest, config, **more)", "parameter 2 is *rest: int"),
    ("python", PYTHON, "handle(request: str, *rest, config, **more)", "parameter 1 is request: Request"),
    ("python", PYTHON, "handle(request, *rest, config = 3, **more)", "parameter 3"),
    ("python", PYTHON, "handle(request, *rest, config, **more) -> None", "returns Response"),
    ("python", PYTHON, "handle", "leaves out its parameters"),
    ("python", "def handle(a, b):", "handle(b, a)", "parameter 1 is a"),
    ("python", "def handle(a, b):", "async def handle(a, b)", "not async"),
    ("python", "def handle(a, b):", "def other(a, b)", "not called other"),
    ("python", "def handle(a, *, b):", "handle(a, b)", "takes 3"),
    ("python", "def handle(a):", "handle(a: int)", "parameter 1 is a"),
    ("typescript", TYPED, "handle(request, retries, next, rest)", "parameter 4 is ...rest"),
    ("typescript", TYPED, "handle(request?, retries, next, ...rest)", "parameter 1"),
    ("typescript", TYPED, "handle(request, retries, next, ...rest): Promise<{ ok: string }>", "returns"),
    ("javascript", "handle = a =>", "handle(b)", "parameter 1 is a"),
    ("go", GO, "Get(ctx context.Context, key string, opts ...Option)", "takes 4"),
    ("go", GO, "Get(ctx context.Context, key, other int, opts ...Option)", "parameter 2 is key: string"),
    ("go", GO, "Get(ctx, key, other, opts) error", "returns"),
    ("rust", RUST, "get(key: K, more)", "parameter 1"),
    ("rust", RUST, "get(key, more) -> V", "returns Result"),
    ("java", JAVA, "find(Map<String, T> by, int at, String... more)", "parameter 2 is at: int[]"),
    ("java", JAVA, "void find(by, at, more)", "returns List"),
    ("java", JAVA, "find(by, at)", "takes 3"),
]
NAMES = ("handle", "Get", "get", "find", "Store")


@each_row(("language", "stands", "claimed"), AGREE)
def test_what_is_said_stands_there(language: str, stands: str, claimed: str) -> None:
    assert describe_difference(claimed, stands, NAMES, language) == ""


@each_row(("language", "stands", "claimed", "why"), DIFFER)
def test_what_is_said_otherwise_is_told(language: str, stands: str, claimed: str, why: str) -> None:
    assert why in describe_difference(claimed, stands, NAMES, language)


@pytest.mark.parametrize("claimed", ["class Store", "Store", "Store(Base)", "class Store(Base):"])
def test_of_a_class_the_name_is_enough(claimed: str) -> None:
    assert describe_difference(claimed, "class Store(Base):", ("Store",), "python", function=False) == ""


def test_only_layout_may_differ_between_two_headers() -> None:
    assert is_same_interface("def f(a, b):", "def f(\n    a,\n    b,\n):", "python")
    assert is_same_interface("int m(int a)", "int  m( int a /* so */ )", "java")
    assert not is_same_interface("def f(a, b):", "def f(a, b=1):", "python")
    assert not is_same_interface("def f(a) -> int:", "def f(a) -> str:", "python")


@given(
    st.sampled_from(sorted(STYLE_BY_LANGUAGE)),
    st.text(max_size=60),
    st.text(alphabet="ab(),:<>[]{}=-*&'\". @#", max_size=60),
)
def test_no_text_is_too_odd_to_be_compared_and_a_text_agrees_with_itself(language: str, one: str, other: str) -> None:
    for claimed, stands in ((one, other), (other, one)):
        assert isinstance(describe_difference(claimed, stands, ("a",), language), str)
        if "=>" not in claimed:
            said = describe_difference(claimed, claimed, ("a",), language, function=False)
            assert said == "" or said.startswith("it is not called")
        assert is_same_interface(claimed, claimed, language)
