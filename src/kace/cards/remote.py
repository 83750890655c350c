"""Trees on a hub. What is pushed is written anew from the tree; what is pulled is screened, as cards of others are.

A repository holds two files of ours: cards.jsonl and profile.toml. No other file of it is ever fetched.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from kace.cards.card import card_line
from kace.cards.diff import as_import
from kace.cards.formats import Bundle, read_exchange, sorted_out
from kace.cards.journal import author
from kace.cards.state import TreeState, read_header, state_text
from kace.cards.store import TreeStore
from kace.cards.tree import EpistemicTree, TreeError, domains_line
from kace.config import PROFILE_FILE, Config, RetrievalConfig, profile_of, profile_text
from kace.errors import DataError, KaceError, UsageError
from kace.files import cannot_write, write_atomic
from kace.models.hub import Unavailable, download
from kace.redact import keep_secret, one_line, redact

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARDS = "cards.jsonl"
MOST = {CARDS: 256 << 20, PROFILE_FILE: 64 << 10}  # bytes of each file
FORM = "write hf://owner/name, hf://datasets/owner/name, and @revision after it for another than main"
FIX = "check the name and the connection; HF_TOKEN is the token, and HF_ENDPOINT another hub"


class PulledTree(NamedTuple):
    """A tree of a hub, as far as its cards keep the rules."""

    tree: EpistemicTree
    refused: Sequence[str]
    changed: Mapping[str, Sequence[str]]  # as `Bundle` has it
    commit: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of a hub, at a revision."""

    uri: str
    kind: str  # model or dataset
    name: str
    revision: str | None
    api: HfApi

    @classmethod
    def at(cls, uri: str, config: Config) -> Repository:
        """The repository that an `hf://` address names, with the token that the hub's own tools use.

        A file says where the hub is only to those who need no token: it may be of whoever made the folder.
        """
        if not find_spec("huggingface_hub"):
            raise UsageError(
                "a hub needs one more library", fix="pip install 'kace[hub]'"
            )
        from huggingface_hub import HfApi, get_token
        from huggingface_hub.utils import parse_hf_uri  # type: ignore[attr-defined]

        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
        try:
            found = parse_hf_uri(uri)
        except ValueError:
            raise UsageError(
                f"'{one_line(uri, 80)}' names no repository", fix=FORM
            ) from None
        if (
            found.type not in ("model", "dataset")
            or found.path_in_repo
            or not uri.startswith("hf://")
        ):
            raise UsageError(
                f"'{one_line(uri, 80)}' names no repository of models or data", fix=FORM
            )
        keep_secret(token := None if config.source("hub") == "file" else get_token())
        api = HfApi(
            endpoint=config.hub.rstrip("/"), token=token or False, library_name="kace"
        )
        return cls(uri, found.type, found.id, found.revision, api)

    def push(self, tree: EpistemicTree, path: Path, *, public: bool) -> str:
        """Commit the tree at a path, and how it is read, to the repository; the commit's address.

        The repository is made where there is none, private unless `public`. What looks like a key is not sent.
        """
        from huggingface_hub import CommitOperationAdd

        texts = {"the registry of domains": domains_line(tree.domains)}
        texts |= {f"card {card.card_id}": card_line(card) for card in tree}
        if leaky := next(
            (name for name, text in texts.items() if redact(text) != text), None
        ):
            raise UsageError(
                f"{leaky} holds what looks like a key; nothing was pushed",
                fix="take it out",
            )
        files = {
            CARDS: state_text(TreeState(tree, generation=0, journal=0, frozen=None)),
            PROFILE_FILE: _reading(profile_of(None, path), str(path)),
        }
        said = f"{len(tree)} cards, content {tree.content_hash()[:12]}"
        with self._asking("written"):
            self.api.create_repo(
                self.name, repo_type=self.kind, private=not public, exist_ok=True
            )
            if self.revision:
                self.api.create_branch(
                    self.name, repo_type=self.kind, branch=self.revision, exist_ok=True
                )
            added = [
                CommitOperationAdd(name, text.encode()) for name, text in files.items()
            ]
            done = self.api.create_commit(
                self.name,
                added,
                commit_message=said,
                repo_type=self.kind,
                revision=self.revision,
            )
            return str(done.commit_url)

    def pull(self, folder: Path) -> PulledTree:
        """Make a tree in a new folder of the repository's cards. The folder is there whole, or not at all.

        Cards that break a rule are left out, with the reasons. Those that were validated elsewhere are experimental.
        """
        if folder.is_symlink() or folder.exists():
            fix = "name a new folder; then kace tree merge brings it into another tree"
            raise UsageError(f"{folder} is there already", fix=fix)
        with self._asking("read"):
            commit = self._commit()
            data = self._files(commit)
        found = _screened(data[CARDS], self.uri, commit)
        if found.refused and not len(found.tree):
            raise DataError(
                f"{self.uri}: every card is refused, as {found.refused[0]}",
                fix="take another tree",
            )
        reading = _profile(data[PROFILE_FILE], self.uri) if PROFILE_FILE in data else ""
        note = f"pulled from {self.uri} at {commit[:12]}"
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(
                prefix=f".{folder.name}.", dir=folder.parent
            ) as place:
                made = Path(place) / "tree"
                TreeStore.create(
                    made, found.tree.domains, found.tree, author=author(), note=note
                )
                if reading:
                    write_atomic(made / PROFILE_FILE, reading)
                made.rename(folder)
        except OSError as error:
            raise cannot_write(folder, error) from None
        return found

    def _commit(self) -> str:
        """The commit that the revision is at now: files of one commit belong together."""
        asked = {"repo_type": self.kind, "revision": self.revision, "expand": ["sha"]}
        found = self.api.repo_info(self.name, **asked)  # type: ignore[arg-type]
        if not found.sha:
            raise Unavailable("the hub names no commit")
        return str(found.sha)

    def _files(self, commit: str) -> dict[str, bytes]:
        """Our files of a commit, none longer than it may be, whatever the hub says of it."""
        from huggingface_hub import RepoFile, hf_hub_url

        known = self.api.get_paths_info(
            self.name, list(MOST), repo_type=self.kind, revision=commit
        )
        sizes = {
            each.path: each.size
            for each in known
            if isinstance(each, RepoFile) and each.path in MOST
        }
        if CARDS not in sizes:
            raise Unavailable(f"it has no file {CARDS}, so it is no tree")
        found = {}
        headers = (
            {"Authorization": f"Bearer {self.api.token}"} if self.api.token else {}
        )
        with TemporaryDirectory() as place:
            for name, size in sizes.items():
                if size > MOST[name]:
                    raise Unavailable(
                        f"{name} has {size:,} bytes, more than {MOST[name]:,}"
                    )
                url = hf_hub_url(
                    self.name,
                    name,
                    repo_type=self.kind,
                    revision=commit,
                    endpoint=self.api.endpoint,
                )
                download(url, part := Path(place) / name, size, headers=headers)
                found[name] = part.read_bytes()
                if len(found[name]) != size:
                    raise Unavailable(
                        f"{name} has {len(found[name]):,} bytes, not {size:,}"
                    )
        return found

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Whatever goes wrong at the hub is one line."""
        try:
            yield
        except KaceError:
            raise
        except Exception as error:  # its client raises errors of many kinds, and those of its JSON as they come
            reason = one_line(str(error) or type(error).__name__)
            raise KaceError(
                f"{self.uri} could not be {what}: {reason}", fix=FIX
            ) from None


def _screened(data: bytes, where: str, commit: str) -> PulledTree:
    """The cards that keep every rule. A hash in the header is the sender's word, so it is not believed."""
    first, _, rest = data.partition(b"\n")
    try:
        domains = read_header(first, Path(CARDS)).domains
    except TreeError as error:
        raise DataError(
            f"{where}, {error.message}", fix="is it a tree, and is kace up to date?"
        ) from None
    bundle = (
        read_exchange(rest, [domain.name for domain in domains])
        if rest.strip()
        else Bundle((), ())
    )
    fitting, refused = sorted_out(EpistemicTree.of(domains, ()), bundle)
    tree = EpistemicTree.of(domains, map(as_import, fitting.values()))
    changed = {
        name: changes for name, changes in bundle.changed.items() if name in tree
    }
    return PulledTree(tree, refused, changed, commit)


def _profile(data: bytes, where: str) -> str:
    try:
        return _reading(tomllib.loads(data.decode()), where)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(
            f"{where}, {PROFILE_FILE}: not TOML ({error})", fix="take another tree"
        ) from None


def _reading(profile: Mapping[str, object], where: str) -> str:
    """The profile of how a tree is read, checked and written anew; nothing of how it was learned."""
    try:
        return profile_text(
            RetrievalConfig.model_validate(profile.get("retrieval", {})).model_dump(),
            {},
        )
    except ValidationError as error:
        raise DataError(
            f"{where}, {PROFILE_FILE}: {one_line(str(error), 200)}",
            fix="is kace up to date?",
        ) from None
