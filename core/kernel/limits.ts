/**
 * Every bound of the service in one place, unit last. Each has a test at the limit and one past it.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** One append: 1 MiB is EventStoreDB's limit, kept on every adapter so that logs can move between them. */
export const APPEND_SIZE_BYTES_MAX = MIB;
/** A stream's name stands in an index of every adapter; entity ids are UUIDs, names of at most 39 characters or digests. */
export const STREAM_NAME_BYTES_MAX = 768;
/** A line of an exported log: an event of the largest size, with its digest, revision and escaped stream name. */
export const LOG_FILE_LINE_BYTES_MAX = APPEND_SIZE_BYTES_MAX + 4 * KIB;
/** Events between two snapshots of a stream. */
export const SNAPSHOT_INTERVAL_EVENTS = 1_000;

export const REF_NAME_BYTES_MAX = 4_096;
/** Files named like refs: 255 less the room for `.lock`. */
export const REF_COMPONENT_BYTES_MAX = 250;
export const PUSH_COMMANDS_MAX = 100_000;
export const PUSH_COMMANDS_BYTES_MAX = 16 * MIB;
export const PUSH_OPTIONS_MAX = 100;
export const PUSH_OPTION_BYTES_MAX = 4_096;
export const SHALLOW_LINES_MAX = 10_000;
export const PACK_SIZE_BYTES_MAX = 4 * GIB;
/** index-pack takes about 170 bytes of memory an object. */
export const PACK_OBJECTS_MAX = 10_000_000;
/** A fetch's arguments, after inflation. */
export const FETCH_REQUEST_BYTES_MAX = 32 * MIB;
/** Each is a ref that upload-pack resolves and walks from. */
export const FETCH_DEEPEN_NOT_MAX = 100;
/** `tree:<depth>`: also told to upload-pack, as uploadpackfilter.tree.maxDepth. */
export const FETCH_TREE_DEPTH_MAX = 16;
/** From so many on, git answers ls-refs with every ref; so do we. */
export const LS_REFS_PREFIXES_MAX = 65_536;
export const SERVER_OPTIONS_MAX = 100;
export const SERVER_OPTION_BYTES_MAX = 4_096;
/** A branch's order of commits is rebuilt rather than spliced when the change reaches deeper than this. */
export const COMMIT_SPLICE_DEPTH_MAX = 10_000;

export const CONTENTS_FILE_BYTES_MAX = 64 * MIB;
/** Files up to this are read whole for one answer and may be kept in memory; larger ones are streamed. */
export const CONTENTS_BUFFERED_BYTES_MAX = MIB;
/** What is shown of a symbolic link's target: PATH_MAX of Linux, beyond which no checkout could make the link. */
export const SYMLINK_TARGET_BYTES_MAX = 4_096;
export const JSON_BODY_BYTES_MAX = MIB;
/** From the end of a request's head to that of its JSON body. */
export const JSON_BODY_SPAN_MS = 60_000;
export const PAGE_LIMIT_DEFAULT = 50;
export const PAGE_LIMIT_MAX = 100;

export const TOKEN_NAME_LENGTH_MAX = 100;
/** Ids that one token's list may hold: an event that lists them stays well below the bound of an append. */
export const TOKEN_REPOSITORIES_MAX = 10_000;
export const REPOSITORY_NAME_LENGTH_MAX = 100;
export const REPOSITORY_DESCRIPTION_LENGTH_MAX = 1_000;
export const USERNAME_LENGTH_MIN = 2;
export const USERNAME_LENGTH_MAX = 39;
export const PASSWORD_LENGTH_MIN = 10;
export const PASSWORD_LENGTH_MAX = 1_024;
export const EMAIL_LENGTH_MAX = 254;
/** A device login is granted and claimed within this. */
export const DEVICE_SESSION_SPAN_MS = 10 * 60_000;
/** Between two polls of one device login; the node that is asked counts. */
export const DEVICE_POLL_INTERVAL_SECONDS = 2;
/** What a device may call itself, in characters. */
export const DEVICE_HOSTNAME_LENGTH_MAX = 255;
/** Device logins that one address may begin within a minute on each node. */
export const DEVICE_SESSIONS_PER_MINUTE_MAX = 10;
/** What a poll that won has to make its token in its own name; then any node does. */
export const DEVICE_TOKEN_SPAN_MS = 5_000;
/** Steps of one workflow that a node carries out at once: appends, so that more would only keep others' waiting. */
export const WORKFLOW_STEPS_AT_ONCE_MAX = 32;
/** How long a reserved name waits for its account (architecture, Streams). */
export const CLAIM_SPAN_MS = 10 * 60_000;
/** Of one account (spec, Limits). */
export const WEBHOOKS_MAX = 20;
/** How long the secret before a rotation signs beside the new one. */
export const WEBHOOK_SECRET_OVERLAP_MS = 24 * 60 * 60_000;
/** How long after that the vault keeps it: a node whose clock is behind signs with it a little longer. */
export const WEBHOOK_SECRET_REMOVAL_MARGIN_MS = 10 * 60_000;
/** From the end of an attempt to the next; one attempt more than there are waits (spec, Delivery behavior). */
export const WEBHOOK_RETRY_WAITS_MS = [8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000] as const;
export const WEBHOOK_ATTEMPTS_MAX = WEBHOOK_RETRY_WAITS_MS.length + 1;
/** The first and those by redelivery: a delivery's row lists every attempt of each, and is written anew with each. */
export const WEBHOOK_SERIES_MAX = 100;
/** A claimed attempt that was not recorded by then is made again: longer than an attempt and its record take. */
export const WEBHOOK_CLAIM_SPAN_MS = 60_000;
/** New commits that a push's payload lists: the newest. */
export const WEBHOOK_PAYLOAD_COMMITS_MAX = 100;
/** UTF-16 code units of a commit's or a tag's message, and of a person's name or address, in a payload: a cut text ends with `…`. */
export const WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX = 64 * KIB;
export const WEBHOOK_PAYLOAD_NAME_LENGTH_MAX = 256;
/** Parents of one commit that a payload names: the first. */
export const WEBHOOK_PAYLOAD_PARENTS_MAX = 100;
/** Of one payload, and of all that one push makes in sum: each has an equal share, into which it is cut. */
export const WEBHOOK_PAYLOAD_BYTES_MAX = 256 * KIB;
export const WEBHOOK_PUSH_PAYLOADS_BYTES_MAX = 128 * MIB;
/** From the lookup of the receiver's name to the end of its answer (spec, Delivery behavior). */
export const WEBHOOK_ATTEMPT_SPAN_MS = 30_000;
/** What is kept of an answer's body. */
export const WEBHOOK_ANSWER_BYTES_MAX = 16 * KIB;
/** Refs of one push that webhooks hear of: the first in the push's own order. */
export const WEBHOOK_PUSH_REFS_MAX = 1_000;
/** Attempts under way: in all, to one receiver's host, and for one account. */
export const WEBHOOK_ATTEMPTS_AT_ONCE_MAX = 400;
export const WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX = 8;
export const WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX = 16;
/** Deliveries of one webhook that are held in memory; the rest wait in the read model. */
export const WEBHOOK_WINDOW_DELIVERIES_MAX = 100;
/** Pushes that are being told at a time, whole or in part; the log is read no further meanwhile. */
export const WEBHOOK_PUSHES_AT_ONCE_MAX = 1_000;
/** New commits of one push that are held in memory to tell each ref its own. */
export const WEBHOOK_PUSH_COMMITS_HELD_MAX = 10_000;
/** What those commits take in sum, in UTF-16 code units of their texts, a parent as 64 of them. */
export const WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX = 32 * MIB;
/** Bodies of deliveries are kept for so long unless a setting says otherwise. */
export const RETENTION_DAYS_DEFAULT = 30;
/** From a layer's put to its append at most; later appends are refused (invariant 2). */
export const PUSH_COMMIT_SPAN_MS = 60 * 60_000;
/** A layer that no event names is swept once it is older than this (invariant 2). */
export const ORPHANED_LAYER_SPAN_MS = 7 * 24 * 60 * 60_000;
/** A vault record that no event names is removed once nobody has asked for it for this long (invariant 5). */
export const UNNAMED_VAULT_RECORD_SPAN_MS = 24 * 60 * 60_000;
/** A read waits this long for a node or a projection to catch up before it answers 503. */
export const READ_WAIT_MS = 10_000;
/** How long a fetch may still want a tip that its ref left meanwhile (git-path, Wants). */
export const LEFT_TIP_SPAN_MS = 60_000;
export const LEFT_TIPS_MAX = 10_000;
/** Bytes of the answers to GET info/refs and ls-refs kept in memory. */
export const REF_ANSWERS_CACHE_BYTES_MAX = 32 * MIB;
/** Bytes of JSON answers to reads that the API keeps in memory, by repository and revision. */
export const API_BODIES_CACHE_BYTES_MAX = 32 * MIB;
/** A body that brings no byte for this long ends its connection. */
export const BODY_IDLE_MS = 120_000;
/** What is read and thrown away of a refused push, so that git reads the reason instead of a broken pipe. */
export const REFUSED_BODY_DRAIN_BYTES_MAX = 256 * MIB;
/** UTF-16 code units of a commit's message, and of a person's name, that lists of commits show. */
export const COMMIT_LISTED_MESSAGE_LENGTH_MAX = 64 * KIB;
export const COMMIT_LISTED_NAME_LENGTH_MAX = 1_024;
/** Answers to clones of larger repositories are not kept: layers in sum. */
export const ANSWER_KEPT_BYTES_MAX = GIB;

/** URLs of webhooks, buckets and issuers: in UTF-16 code units. */
export const OUTGOING_URL_LENGTH_MAX = 2_048;
/** Of an answer to an outgoing request: the fields of one head, their bytes with those of trailers, heads of status 1xx. */
export const OUTGOING_HEADERS_MAX = 100;
export const OUTGOING_HEADER_BYTES_MAX = 16 * KIB;
export const OUTGOING_INFORMATIONAL_MAX = 10;
/** What the handshake, heads and framing of an answer may take on the wire beside the body that is kept. */
export const OUTGOING_WIRE_OVERHEAD_BYTES_MAX = MIB;
/** When a URL is saved its name is looked up for so long; one that is not found by then is checked at its first use. */
export const TARGET_CHECK_SPAN_MS = 5_000;
