#!/usr/bin/env python3
"""A second verifier of accounts' logs, written from ../audit.md (Verify it yourself) and from nothing else.

It needs Python 3.8 and no package. It keeps the leaves in memory: it is there to be read, and strata-verify to be fast.
"""
import argparse
import base64
import datetime
import decimal
import hashlib
import json
import os
import re
import sys

import ed25519

CLOCKS = "if no node's clock was more than a minute off when it wrote"
FORM_1 = 'a slice of form 1 may hide entries at its edges: nothing shows that it begins and ends where it says'
ENTRY = set('actor causation_id data id occurred_at request_id revision sequence source_address_ref stream type version'
            .split())
SLICE_1 = {'checkpoint', 'from', 'left', 'right'}
SLICE_2 = {*SLICE_1, 'form', 'guards', 'since', 'until'}
BASE64 = '([A-Za-z0-9+/]+=*)'
NAME = '[!-*,-~]+'
LINE_MAX = 8 * 1024 * 1024


class Refuted(Exception):
    """What is wrong with a file."""


def require(condition, what):
    if not condition:
        raise Refuted(what)


def sha256(data):
    return hashlib.sha256(data).digest()


def is_text(value, form='.*'):
    return isinstance(value, str) and re.fullmatch(form, value, re.DOTALL) is not None


def is_count(value):
    return isinstance(value, float) and value.is_integer() and 0 <= value < 2 ** 53


def is_hash(value):
    return is_text(value, '[0-9a-f]{64}')


def is_object(value, names):
    return isinstance(value, dict) and set(value) == set(names)


def bytes_of(text):
    """The bytes of canonical base64; None for anything else."""
    try:
        data = base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None


def hash_of(text):
    data = bytes_of(text)
    require(data is not None and len(data) == 32, 'a hash is not 32 bytes in base64')
    return data


def instant(text):
    """The moment of a text in the form of `occurred_at`; None for anything else."""
    if not is_text(text, r'[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z'):
        return None
    try:
        return datetime.datetime.strptime(text, '%Y-%m-%dT%H:%M:%S.%fZ')
    except ValueError:
        return None


def asked_time(text):
    """An argument, any time of RFC 3339, in the form of `occurred_at`."""
    found = re.fullmatch(r'(.{19})(?:\.([0-9]+))?(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))', text.upper())
    moment = found and instant(f'{found[1]}.{(found[2] or "")[:3]:0<3}Z')
    try:
        if moment and found[3]:
            moment -= int(found[3] + '1') * datetime.timedelta(hours=int(found[4]), minutes=int(found[5]))
    except OverflowError:
        moment = None
    if moment is None:
        raise argparse.ArgumentTypeError('no RFC 3339 time such as 2026-11-21T10:00:00Z')
    return moment.isoformat(timespec='milliseconds') + 'Z'


def number(value):
    """A number as ECMAScript writes it."""
    require(abs(value) != float('inf'), 'it holds a number that JSON has not')
    if value == 0:
        return '0'
    _, digits, exponent = decimal.Decimal(repr(abs(value))).normalize(decimal.Context(prec=20)).as_tuple()
    text, point = ''.join(map(str, digits)), len(digits) + exponent
    if len(text) <= point <= 21:
        text = text.ljust(point, '0')
    elif 0 < point <= 21:
        text = f'{text[:point]}.{text[point:]}'
    elif -6 < point <= 0:
        text = f'0.{"0" * -point}{text}'
    else:
        text = f'{text[0]}{"." if len(text) > 1 else ""}{text[1:]}e{"+" if point > 0 else "-"}{abs(point - 1)}'
    return f'-{text}' if value < 0 else text


def canonical(value, depth=0):
    """RFC 8785."""
    require(depth <= 100, 'it is deeper than 100')
    if isinstance(value, str):
        value.encode()  # Half of a surrogate pair has no UTF-8: UnicodeEncodeError, a ValueError.
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f'[{",".join(canonical(item, depth + 1) for item in value)}]'
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode('utf-16-be', 'surrogatepass'))
        return '{' + ','.join(f'{canonical(name)}:{canonical(value[name], depth + 1)}' for name in names) + '}'
    return number(value) if isinstance(value, float) else json.dumps(value)


def parsed(raw):
    """A line's object, and its text."""
    def refuse(name):
        raise ValueError(f'{name} is no JSON')
    require(raw.endswith(b'\n'), 'it does not end in a line feed')
    text = raw[:-1].decode('utf-8')
    require(len(text.encode('utf-16-le')) <= 2 * LINE_MAX, 'it is too long')
    line = json.loads(text, parse_int=float, parse_constant=refuse)
    require(isinstance(line, dict) and canonical(line) == text, 'it is not canonical')
    return line


# The tree: RFC 6962, section 2.1. A stack holds complete subtrees (level, index, hash) from left to right.

def node(left, right):
    return sha256(b'\1' + left + right)


def push(stack, level, index, data):
    while stack and stack[-1][0] == level and index % 2 == 1:
        level, index, data = level + 1, index // 2, node(stack.pop()[2], data)
    stack.append((level, index, data))


def push_range(stack, begin, end, hashes):
    """Adds the perfect subtrees that the leaves from begin up to end consist of."""
    require(isinstance(hashes, list), 'its left and right are no lists')
    rest = [hash_of(text) for text in hashes]
    while begin < end and rest:
        level = 0
        while begin % 2 ** (level + 1) == 0 and begin + 2 ** (level + 1) <= end:
            level += 1
        push(stack, level, begin >> level, rest.pop(0))
        begin += 2 ** level
    require(begin == end and not rest, 'its left and right are not the rest of the tree')


def root_of(stack):
    root = stack[-1][2] if stack else sha256(b'')
    for _, _, data in reversed(stack[:-1]):
        root = node(data, root)
    return root


def key_of(line):
    """(name, id, public key), None in the place of the last for a kind that is not Ed25519; None for no key."""
    found = re.fullmatch(rf'({NAME})\+([0-9a-f]{{8}})\+{BASE64}', line) if isinstance(line, str) else None
    data = bytes_of(found[3]) if found else None
    is_key = data and len(data) > 1 and sha256(f'{found[1]}\n'.encode() + data).hex()[:8] == found[2]
    if not is_key or (data[0] == 1 and len(data) != 33):
        return None
    return found[1], found[2], data[1:] if data[0] == 1 else None


def read_keys(path):
    """The lines of a file of keys."""
    keys = set()
    with open(path, encoding='utf-8') as file:
        for line in filter(None, (line.strip() for line in file if not line.startswith('#'))):
            if key_of(line) is None:
                raise ValueError(f'{path}: {line!r} is no key')
            keys.add(line)
    if not keys:
        raise ValueError(f'{path} holds no key')
    return keys


class Checkpoint:
    def __init__(self, note):
        require(is_text(note, '[^\0-\x09\x0b-\x1f]*\n\n(?:[^\0-\x1f]+\n){1,100}'), 'its checkpoint is no signed note')
        text, _, lines = note.rpartition('\n\n')
        self.text = f'{text}\n'
        found = re.fullmatch(rf'([!-~]+/log/([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}))\n'
                             rf'(0|[1-9][0-9]{{0,14}})\n(.*)\n', self.text)
        require(found, 'it is no checkpoint of an account')
        self.origin, self.account, self.size, self.root = found[1], found[2], int(found[3]), hash_of(found[4])
        self.signatures = [re.fullmatch(rf'— ({NAME}) {BASE64}', line) for line in lines[:-1].split('\n')]
        self.signatures = [found and (found[1], bytes_of(found[2])) for found in self.signatures]
        require(all(found and found[1] and len(found[1]) > 4 for found in self.signatures), 'it is not signed')

    def signers(self, lines):
        """Those of the keys that signed it."""
        signers = set()
        for name, data in self.signatures:
            for line in lines:
                key_name, key_id, public = key_of(line)
                if (key_name, key_id) == (name, data[:4].hex()) and public is not None:
                    require(ed25519.verify(public, self.text.encode(), data[4:]), f'the signature of {name} is wrong')
                    signers.add(line)
        is_own = any(self.origin.startswith(f'{key_of(line)[0]}/log/') for line in signers)
        require(not signers or is_own, 'its key is of another log')
        return signers


class Keys:
    """Which key signs the log: states are (sequence, key in force, whether it is trusted, the one before)."""

    def __init__(self, named, revoked, after):
        self.named, self.revoked, self.after = named - {revoked}, revoked, after
        self.known, self.states, self.is_rooted = named | ({revoked} if revoked else set()), [], True

    def is_given(self, line, size):
        return line in self.named or (self.revoked == line and size <= self.after)

    def add(self, entry):
        if entry['type'] != 'LogKeyEndorsed' or not entry['stream'].startswith('account-'):
            return
        data, sequence = entry['data'], int(entry['sequence'])
        require(is_object(data, ['key', 'previous', 'signature']), 'its data are no endorsement')
        key, previous, signature = data['key'], data['previous'], data['signature']
        require(key_of(key) and key_of(previous), 'its data name no keys')
        signed = None if signature is None else bytes_of(signature)
        require(signature is None or signed is not None, 'its signature is no base64')
        _, force, is_trusted, _ = self.states[-1] if self.states else (None, previous, None, None)
        require(force == previous, f'{previous} endorses a key, and {force} is in force')
        is_late = previous == self.revoked and sequence >= self.after
        require(signature is None or not is_late, f'{previous} endorses a key, and was revoked')
        public = key_of(previous)[2]
        is_signed = signed is not None and public is not None
        text = canonical({'key': key, 'previous': previous}).encode()
        require(not is_signed or ed25519.verify(public, text, signed), 'its previous key did not sign it')
        if is_trusted is None:
            self.is_rooted = previous in self.known
            is_trusted = self.is_given(previous, sequence + 1)
        is_trusted = self.is_given(key, sequence + 1) or (is_signed and is_trusted)
        self.states.append((sequence, key, is_trusted, previous))

    def is_signed(self, checkpoint, begin, end, undecided):
        size = checkpoint.size
        seen = [state for state in self.states if state[0] < size and size >= begin]
        _, force, is_trusted, _ = seen[-1] if seen else (None, None, False, None)
        replaced = {previous for _, _, _, previous in seen} - {force}
        signers = checkpoint.signers(self.known | replaced | ({force} if seen else set()))
        require(size <= self.after or self.revoked not in signers, f'{self.revoked} signed, and was revoked')
        if force in signers and is_trusted:
            return True
        require(not signers or not seen or size > end or force in signers, f'{force} is in force, and did not sign')
        if any(self.is_given(line, size) and line not in replaced for line in signers):
            return True
        require(not signers & replaced, f'a key that was replaced signed {size} entries')
        undecided.append(f'no trusted key signed the checkpoint of {size} entries')
        return False


def check_entry(line):
    """Checks an entry or a guard by itself."""
    entry, openings = line['entry'], line.get('openings', {})
    require(is_object(entry, ENTRY), 'its entry has not the twelve members')
    require(line.get('guard', True) is True and isinstance(openings, dict), 'its guard or openings have another form')
    actor, source, data = entry['actor'], entry['source_address_ref'], entry['data']
    require(is_object(actor, ['kind', 'id']) and all(map(is_text, actor.values())), 'its actor has another form')
    require(entry['causation_id'] is None or is_text(entry['causation_id']), 'its causation_id has another form')
    require(source is None or is_hash(source), 'its source_address_ref has another form')
    require(isinstance(data, dict) and instant(entry['occurred_at']), 'its data or occurred_at has another form')
    require(all(is_text(entry[name]) for name in ('id', 'type', 'request_id')), 'a text of it has another form')
    require(is_text(entry['stream'], '[A-Za-z]+-[^\n\r\u2028\u2029].*'), 'its stream has another form')
    require(all(is_count(entry[name]) for name in ('revision', 'sequence', 'version')), 'a number has another form')
    require(entry['version'] > 0, 'its version is 0')
    hashed = canonical({name: value for name, value in entry.items() if name != 'sequence'}, 1)
    require(sha256(b'\0' + hashed.encode()) == hash_of(line['leaf']), 'its leaf is not the hash of its entry')
    held = {source, *references(data)}
    for ref, opening in openings.items():
        require(ref in held and is_object(opening, ['nonce', 'value']), f'the opening of {ref} has another form')
        require(is_hash(opening['nonce']) and is_text(opening['value']), f'the opening of {ref} has another form')
        opened = sha256(bytes.fromhex(opening['nonce']) + opening['value'].encode()).hex()
        require(opened == ref, f'the opening of {ref} does not open it')
    return entry


def references(data):
    for name, member in data.items():
        if name.endswith(('_ref', '_refs')):
            yield from filter(is_hash, member if isinstance(member, list) else [member])
        if isinstance(member, dict):
            yield from references(member)


def check_order(entry, revisions, is_slice):
    """Checks that the entry's revision is the next one of its stream."""
    stream, revision = entry['stream'], entry['revision']
    is_claim, last = stream.startswith(('username-', 'email-')), revisions.get(stream)
    if last is None:
        fits = is_slice or is_claim or revision == 0 or (stream.startswith('deviceSession-') and revision == 1)
    else:
        fits = revision == last + 1 or (is_claim and revision > last and entry['type'] == 'Claimed')
    require(fits, f'revision {revision:.0f} of {stream} is not the next one')
    revisions[stream] = revision


def account_of(entry):
    found = re.fullmatch('(?:account|usage)-(.+)', entry['stream'], re.DOTALL)
    named = found[1] if found else entry['data'].get('account')
    return {named} if is_text(named) else set()


def verify(path, named, revoked, after, kept, since, until, of_several):
    """Returns the report, whether the file is verified, and its log; raises Refuted."""
    rows, leaves, revisions, accounts, line = [], [], {}, set(), {'entry': None}
    keys, unsigned = Keys(named or set(), revoked, after), []
    with open(path, 'rb') as file:
        # A character takes three bytes at most: what is longer is cut here, and refused.
        for count, raw in enumerate(iter(lambda: file.readline(3 * LINE_MAX + 1), b''), 1):
            try:
                require('entry' in line, 'it stands behind the checkpoint')
                line = parsed(raw)
                if set(line) not in ({'entry', 'leaf', 'openings'}, {'entry', 'guard', 'leaf'}):
                    require(set(line) in ({'checkpoint'}, SLICE_1, SLICE_2), 'it is no line of an export')
                    continue
                entry = check_entry(line)
                begin = int(entry['sequence']) if not rows else begin
                require(entry['sequence'] == begin + len(rows), f'it has sequence {entry["sequence"]:.0f}')
                check_order(entry, revisions, begin > 0)
                accounts |= account_of(entry)
                keys.add(entry)
                at = entry['occurred_at']
                rows.append((max(at, rows[-1][0]) if rows else at, at, 'guard' in line))
                leaves.append(hash_of(line['leaf']))
            except (Refuted, ValueError, RecursionError) as error:
                raise Refuted(f'line {count}: {error}') from error
    require('checkpoint' in line, 'it ends without a checkpoint')
    checkpoint, undecided, is_whole = Checkpoint(line['checkpoint']), [], set(line) == {'checkpoint'}
    require(accounts <= {checkpoint.account}, f'it is of {accounts}, its checkpoint of {checkpoint.account}')
    first = line.get('from', 0.0)
    require(is_count(first) and (not rows or begin == first), 'it does not begin where it says')
    begin, end, size = int(first), int(first) + len(rows), checkpoint.size
    require(end == size if is_whole else end <= size, 'its checkpoint is of another size')
    signed = keys.is_signed(checkpoint, begin, end, unsigned) and named is not None
    proved = proved_range(line, rows, begin, size)
    stack, roots = [], {}
    push_range(stack, 0, begin, line.get('left', []))
    for index, leaf in enumerate([*leaves, None], begin):
        if any(old.size == index for old in kept):
            roots[index] = root_of(stack)
        if leaf is not None:
            push(stack, 0, index, leaf)
    push_range(stack, end, size, line.get('right', []))
    roots[size] = root_of(stack)
    require(roots[size] == checkpoint.root, 'the entries are not those that the checkpoint signs')
    for old in kept:
        if of_several and old.origin != checkpoint.origin:
            continue
        require(old.origin == checkpoint.origin, f'a kept checkpoint is of {old.origin}')
        require(old.size <= size, f'the log had {old.size} entries, and now {size}')
        require(roots.get(old.size, old.root) == old.root, f'the kept checkpoint of {old.size} entries does not agree')
        if old.size not in roots:
            undecided.append(f'the kept checkpoint of {old.size} entries ends outside of this slice')
        keys.is_signed(old, begin, end, unsigned)
    if revoked and not any(old.origin == checkpoint.origin and old.size == after for old in kept):
        undecided.append(f'no kept checkpoint of this log has exactly {after} entries')
    if is_whole and not keys.is_rooted:
        unsigned.append("--keys does not name the log's first key")
    undecided += [] if named is None else unsigned
    compare(proved, since, until, end == size, undecided)
    report = [f'{sum(not guard for _, _, guard in rows)} entries of {checkpoint.origin}']
    report += [f'range {proved[0] or "from the start"} until {proved[1]}, {CLOCKS}' if proved else 'range not proved']
    if proved is None:
        print(f'warning: {path}: {FORM_1}', file=sys.stderr)
    report += [] if is_whole or since or until else ['no file shows what was asked for: compare the range']
    return report + [f'signed {"yes" if signed else "no"}'] + undecided, signed and not undecided, checkpoint.origin


def proved_range(line, rows, begin, size):
    """The log times that a file proves: (since, until); None for a slice of form 1."""
    if 'form' not in line:
        require(not any(guard for _, _, guard in rows), 'only a slice of form 2 has guards')
        return None if 'from' in line else (None, rows[-1][0] if rows else None)
    guards, since, until = line['guards'], line['since'], line['until']
    require(line['form'] == 2.0 and is_object(guards, ['before', 'behind']), 'it is of another form')
    require(all(map(is_count, guards.values())), 'its guards are not counted')
    require(all(bound is None or instant(bound) for bound in (since, until)), 'its since or until is no time')
    before, behind = int(guards['before']), int(guards['behind'])
    own = len(rows) - before - behind
    require(own >= 0, 'it has not as many guards')
    if not rows:
        require(size == 0, 'it has no guards')
        return since, None
    for index, (log_time, _, guard) in enumerate(rows):
        is_late, is_early = since is None or log_time >= since, until is None or log_time < until
        is_own = before <= index < before + own
        fits = not is_late if index < before else is_late and is_early if is_own else not is_early
        require(fits and guard != is_own, f'line {index + 1} is on the wrong side of an edge')
    two_minutes = datetime.timedelta(minutes=2)
    is_old = before > 0 and instant(since) - instant(rows[0][1]) > two_minutes
    is_new = behind > 0 and instant(rows[-1][1]) - instant(until) > two_minutes
    is_end, last = begin + len(rows) == size, rows[-1][0]
    require(begin == 0 or is_old, 'it begins neither with the log nor with a guard that is two minutes older')
    require(is_end or is_new, 'it ends neither with the log nor with a guard that is two minutes later')
    return since, last if is_end and (until is None or until > last) else until


def compare(proved, since, until, is_end, undecided):
    """Compares the range that a file proves with the one that was asked for."""
    if proved is None:
        undecided += ['a slice of form 1 proves no range'] if since or until else []
        return
    require(since in (None, proved[0]), f'it proves the log from {proved[0]} on, and not from {since} on')
    if until not in (None, proved[1]):
        is_beyond = is_end and (proved[1] is None or until > proved[1])
        require(is_beyond, f'it proves the log until {proved[1]}, and not until {until}')
        undecided.append(f'the log ends at {proved[1]}, which proves nothing of the time until {until}')


def printable(text):
    """What a file says, so that it cannot write lines of its own."""
    return ''.join(char if char.isprintable() else '\N{REPLACEMENT CHARACTER}' for char in text[:1000])


def files_of(paths):
    for path in paths:
        names = sorted(name for name in os.listdir(path) if name.endswith('.ndjson')) if os.path.isdir(path) else None
        if names == []:
            raise ValueError(f'{path} holds no file *.ndjson')
        yield from [path] if names is None else [os.path.join(path, name) for name in names]


def main():
    parser = argparse.ArgumentParser(description="Verifies exports of accounts' logs of Strata.", allow_abbrev=False)
    parser.add_argument('files', nargs='+', metavar='FILE', help='exports, or folders of files *.ndjson')
    parser.add_argument('--keys', metavar='FILE', help="the service's first key")
    parser.add_argument('--checkpoint', metavar='FILE', action='append', default=[], help='a checkpoint that was kept')
    parser.add_argument('--since', metavar='TIME', type=asked_time, help='where the range that was asked for begins')
    parser.add_argument('--until', metavar='TIME', type=asked_time, help='where the range that was asked for ends')
    parser.add_argument('--revoke', metavar='KEY', help='a stolen key, which counts up to a kept checkpoint')
    parser.add_argument('--after', metavar='SIZE', help='of exactly SIZE entries')
    given = parser.parse_intermixed_args()
    if (given.revoke is None) != (given.after is None):
        parser.error('give --revoke and --after together')
    if given.revoke is not None and key_of(given.revoke) is None:
        parser.error('--revoke is no key')
    if given.after is not None and not re.fullmatch('0|[1-9][0-9]{0,14}', given.after):
        parser.error('--after is no number of entries')
    after = int(given.after or 0)
    try:
        keys = read_keys(given.keys) if given.keys else None
        kept = [Checkpoint(open(path, encoding='utf-8', newline='').read()) for path in given.checkpoint]
        files = list(files_of(given.files))
    except (OSError, ValueError, Refuted) as error:
        parser.error(str(error))
    statuses, origins = set(), set()
    for path in files:
        try:
            asked = given.since, given.until
            report, decided, origin = verify(path, keys, given.revoke, after, kept, *asked, len(files) > 1)
            print('\n  '.join([f'{"verified" if decided else "undecided"} {path}', *report]))
            statuses.add(0 if decided else 2)
            origins.add(origin)
        except Refuted as error:
            print(f'refuted {path}: {printable(str(error))}')
            statuses.add(1)
        except OSError as error:
            print(f'undecided {path}: {error}')
            statuses.add(2)
    if any(old.origin not in origins for old in kept) and 1 not in statuses:
        print('a kept checkpoint is of no log that was given')
        statuses.add(2)
    return 1 if 1 in statuses else max(statuses)


if __name__ == '__main__':
    sys.stdout.reconfigure(errors='backslashreplace')
    try:
        sys.exit(main())
    except (Exception, KeyboardInterrupt) as error:
        # Python's own status of an error is 1, which says that a file is refuted.
        print(f'{type(error).__name__}: {error}', file=sys.stderr)
        sys.exit(2)
