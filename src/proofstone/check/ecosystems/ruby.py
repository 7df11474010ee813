"""Ruby: RSpec or a Rake test task, through Bundler if there is a Gemfile, and RuboCop if it is configured."""

from __future__ import annotations

import re
from collections.abc import Iterable

from proofstone.check.ecosystems.ecosystem import Ecosystem, Package, make_optional_check, make_test_check
from proofstone.check.models import CheckKind, CheckSpec, ReportFormat

_TEST_TASK = re.compile(
    r"Rake::TestTask|Minitest::TestTask|^\s*task\s*\(?\s*(?::test\b|test:|['\"]test['\"])", re.MULTILINE
)
_JUNIT = ("--format", "progress", "--format", "RspecJunitFormatter", "--out", "{report}/rspec.xml")


def _find_checks(package: Package) -> Iterable[CheckSpec]:
    has_gemfile = package.has("Gemfile")
    prefix, tool = (("bundle", "exec"), "bundle") if has_gemfile else ((), "")
    install = "gem install bundler && bundle install" if has_gemfile else "gem install rspec rake rubocop"
    gems = "\n".join(package.text(name) for name in package.find_top_level("Gemfile", "Gemfile.lock", "*.gemspec"))
    specs = [name for name in package.find_named("*_spec.rb") if name.startswith("spec/")]
    if specs and (package.has(".rspec") or "rspec" in gems):
        has_junit = "rspec_junit_formatter" in gems
        yield make_test_check(
            *("rspec", tool or "rspec", *prefix, "rspec", *(_JUNIT if has_junit else ())),
            report=ReportFormat.JUNIT if has_junit else ReportFormat.EXIT_CODE,
            install=install,
        ).model_copy(update={"evidence": package.path(".rspec" if package.has(".rspec") else specs[0])})
    for rakefile in package.find_top_level("Rakefile", "rakefile", "Rakefile.rb")[:1]:
        if _TEST_TASK.search(package.text(rakefile)):
            spec = make_test_check(
                *("rake", tool or "rake", *prefix, "rake", "test"), report=ReportFormat.EXIT_CODE, install=install
            )
            yield spec.model_copy(update={"evidence": f"{package.path(rakefile)} task test"})
    if package.has(".rubocop.yml"):
        yield make_optional_check(
            CheckKind.LINT,
            "rubocop",
            tool or "rubocop",
            *(*prefix, "rubocop", "--force-exclusion", "--format", "emacs", "{changed}"),
            install=install,
            suffixes=(".rb", ".rake", ".gemspec"),
        ).model_copy(update={"evidence": package.path(".rubocop.yml")})


RUBY = Ecosystem(
    name="ruby",
    manifests=("Gemfile", "*.gemspec"),
    weak_manifests=("Rakefile", ".rspec", ".rubocop.yml"),
    find=_find_checks,
)
