/**
 * Limits that several rooms share (test/architecture/room-order.ts). docs/limits.md lists every limit of the service.
 *
 * A limit stands where it is used: one that a single file uses stands in that file, below the imports; one that several
 * files of a room use stands in the room's `limits.ts`; one that several rooms use stands here, and so does one that
 * every implementation of a port keeps. Limits that one comment explains stay together.
 *
 * Invariants: a limit's name ends with its unit and bound. One that a caller can reach has a test at it and one past it
 * (test/limits/judged.ts); the comment of any other says after `Internal:` why no caller can reach it.
 */
import { GIB, KIB, MIB } from './byte-units.ts';

/** The size of one append: 1 MiB is EventStoreDB's limit. Every adapter has it, so that logs can move between them. */
export const APPEND_SIZE_BYTES_MAX = MIB;
/** The longest read lease that a setting may ask for. Internal: only the operator's setting reaches it. */
export const READ_LEASE_SPAN_MS_MAX = 10_000;
/** Adapters keep stream names in an index. Entity ids are UUIDs, names of at most 39 characters, or digests. */
export const STREAM_NAME_BYTES_MAX = 768;
/** A line of an exported log: the largest event, with its digest, revision and escaped stream name. */
export const LOG_FILE_LINE_BYTES_MAX = APPEND_SIZE_BYTES_MAX + 4 * KIB;
/**
 * With this many layers a repository is compacted immediately. Each layer costs a cold clone a request to the store.
 */
export const LAYERS_MAX = 64;
/**
 * How long nobody pushed to a repository before its few layers are compacted. Internal: compactions change no answer.
 */
export const COMPACTION_IDLE_MS = 60_000;
/**
 * Layers that a compaction replaced stay at least this long, whatever the retention is: requests under way still read
 * them.
 */
export const REPLACED_LAYERS_KEPT_MS_MIN = 60 * 60_000;
/**
 * How long after a change its manifest is written: one for all changes of that time. With the looks at the log and at
 * the rows it is there within a minute. Internal: no request reads a manifest.
 */
export const MANIFEST_DELAY_MS = 50_000;
/** The layers of a repository of which a compaction drops what no ref reaches: it needs twice their size of disk. */
export const DROPPING_BYTES_MAX = 8 * GIB;
/** Deleted repositories that a list names, the newest: each is folded from its own stream. */
export const DELETED_REPOSITORIES_LISTED_MAX = 100;
/** Events between two snapshots of a stream. Internal: snapshots change no answer. */
export const SNAPSHOT_INTERVAL_EVENTS = 1_000;
/** Refs of all repositories that the fold of an account keeps, about 250 bytes each. Their streams have the others. */
export const ACCOUNT_FOLD_REFS_MAX = 32_768;
/** The length of a ref's whole name. */
export const REF_NAME_BYTES_MAX = 4_096;
/** Refs that one push may change, and the bytes of their commands. */
export const PUSH_COMMANDS_MAX = 100_000;
export const PUSH_COMMANDS_BYTES_MAX = 16 * MIB;
/** Parents of one commit. A push with a commit of more is refused. */
export const COMMIT_PARENTS_MAX = 1_000;
/**
 * The length of a path in a recursive listing, and in changes of files: Linux's PATH_MAX, beyond which no checkout can
 * create the file.
 */
export const TREE_PATH_BYTES_MAX = 4_096;
/** How many tags a ref may be peeled through: a tag of a tag of a tag counts three. */
export const TAG_CHAIN_LENGTH_MAX = 50;
/** The size of the pack of one push. */
export const PACK_SIZE_BYTES_MAX = 4 * GIB;
/** How much of a refused push is read and discarded, so that its client reads the reason instead of a broken pipe. */
export const REFUSED_BODY_DRAIN_BYTES_MAX = 256 * MIB;
/**
 * The memory of the processes that check packs on a node, all together, unless STRATA_PUSH_MEMORY_BYTES_MAX says
 * otherwise, or the machine has less than four times as much.
 */
export const PUSH_MEMORY_BYTES_MAX = 640 * MIB;
/** The body of a fetch request, after inflation. */
export const FETCH_REQUEST_BYTES_MAX = 32 * MIB;
/** The size of a file that the API and the website send. */
export const CONTENTS_FILE_BYTES_MAX = 64 * MIB;
/** Files that the diff of two commits lists. */
export const DIFF_FILES_MAX = 3_000;
/** Bytes of one path in git's output for a diff. */
export const DIFF_PATH_BYTES_MAX = 64 * KIB;
/** The processor time that git may take for a read for a page that is no diff. */
export const HISTORY_READ_CPU_SECONDS_MAX = 60;
/**
 * The longest name of an entry that the website links and looks for the last commit of: Linux's PATH_MAX, beyond which
 * no checkout can create the file. Git bounds no name.
 */
export const LINKED_NAME_BYTES_MAX = 4_096;
/** Archives that a node makes at the same time: in all, and for one account. */
export const ARCHIVES_AT_ONCE_MAX = 8;
export const ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX = 2;
/** The time from the end of a request's head to the end of its JSON body. */
export const JSON_BODY_SPAN_MS = 60_000;
/** Items on one page of a list, unless the client asks for another number. Internal: it is a default. */
export const PAGE_LIMIT_DEFAULT = 50;
/** Access tokens of one account that are neither revoked nor expired. Creations that race may exceed it. */
export const ACCESS_TOKENS_MAX = 1_000;
/** The length of the name of an access token or of a trust rule, in characters. */
export const TOKEN_NAME_LENGTH_MAX = 100;
/** Repositories that the tokens of an account list in sum: one list of them is in an answer. */
export const TOKENS_REPOSITORIES_MAX = 100_000;
/** The length of a repository's name. */
export const REPOSITORY_NAME_LENGTH_MAX = 100;
/** The length of a repository's description, in characters. */
export const REPOSITORY_DESCRIPTION_LENGTH_MAX = 1_000;
/** The longest username. */
export const USERNAME_LENGTH_MAX = 39;
/** The length of a password, in characters. */
export const PASSWORD_LENGTH_MIN = 10;
export const PASSWORD_LENGTH_MAX = 1_024;
/** The length of an email address: RFC 5321 allows no longer path. */
export const EMAIL_LENGTH_MAX = 254;
/** Sign-ins of one account that wait for the second factor; the oldest gives way. */
export const PENDING_SIGN_INS_MAX = 10;
/** Sessions of one account; the oldest gives way. */
export const SESSIONS_MAX = 50;
/** Second factors of one account, those that are still pending included. */
export const MFA_TOKENS_MAX = 5;
/** The length of the name of a second factor, in characters. */
export const MFA_TOKEN_NAME_LENGTH_MAX = 100;
/** The time to answer the challenge of a passkey. */
export const PASSKEY_CHALLENGE_SPAN_MS = 5 * 60_000;
/** Unanswered challenges of one account; a new one beyond them replaces the oldest. */
export const PASSKEY_CHALLENGES_MAX = 10;
/** The time in which a device login must be granted and claimed. */
export const DEVICE_SESSION_SPAN_MS = 10 * 60_000;
/** The least time between two polls of one device login; each node measures it alone. */
export const DEVICE_POLL_INTERVAL_SECONDS = 2;
/** The length of a device's host name, in characters. */
export const DEVICE_HOSTNAME_LENGTH_MAX = 255;
/** How long after its end a device login still answers its polls; then it is unknown. */
export const DEVICE_SESSION_KEPT_MS = 60 * 60_000;
/**
 * What requests cost in points: a read of the API, of refs by Git, or of a page; what appends or runs git; a fetch that
 * git answers, beside the read that it is too; and a push. Internal: it is a list of prices.
 */
export const REQUEST_POINTS = { read: 2, page: 10, costly: 20, fetch: 20, push: 40 } as const;
/**
 * What a piece of a body takes of memory beside its bytes, however short it is. Internal: it is a part of how the
 * memory of a body is counted.
 */
export const BODY_CHUNK_HELD_BYTES = 512;
/** UTF-16 code units of a user agent that are kept. */
export const USER_AGENT_LENGTH_MAX = 256;
/** How long a closed account can be reopened. After it, the account is erased. */
export const ACCOUNT_CLOSED_SPAN_MS = 14 * 24 * 60 * 60_000;
/**
 * Steps of one workflow that a node carries out concurrently. They append, so more would only delay other appends.
 * Internal: further steps wait.
 */
export const WORKFLOW_STEPS_AT_ONCE_MAX = 32;
/** Webhooks of one account (docs/interface.md, Webhooks). */
export const WEBHOOKS_MAX = 20;
/** The waits between attempts, so there is one attempt more than waits (docs/workflows.md, Webhook deliveries). */
export const WEBHOOK_RETRY_WAITS_MS = [8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000] as const;
export const WEBHOOK_ATTEMPTS_MAX = WEBHOOK_RETRY_WAITS_MS.length + 1;
/**
 * The first series of attempts and the redeliveries: a delivery's row lists all attempts, and each rewrites the row.
 */
export const WEBHOOK_SERIES_MAX = 100;
/** New commits that a push's payload lists, newest first. */
export const WEBHOOK_PAYLOAD_COMMITS_MAX = 100;
/** The size of one payload. */
export const WEBHOOK_PAYLOAD_BYTES_MAX = 256 * KIB;
/** The time from the lookup of the receiver's name to the end of its answer (docs/workflows.md, Webhook deliveries). */
export const WEBHOOK_ATTEMPT_SPAN_MS = 30_000;
/** How many hours ahead pings and redeliveries beyond the budget of an hour may wait. */
export const WEBHOOK_BUDGET_HOURS_MAX = 24;
/**
 * What a delivery that has not ended needs stays beyond the retention for so long: the objects of a push whose webhooks
 * were not notified yet, and the payloads. Internal: it is the pace of background work.
 */
export const PENDING_DELIVERY_KEPT_MS = 24 * 60 * 60_000;
/**
 * The time from a layer's put to the last moment at which its append may be sent; later ones are refused
 * (docs/architecture.md, invariant 2).
 */
export const PUSH_COMMIT_SPAN_MS = 60 * 60_000;
/**
 * The age at which a layer that no event names is removed (docs/architecture.md, invariant 2). Internal: it is the pace
 * of background work.
 */
export const ORPHANED_LAYER_SPAN_MS = 7 * 24 * 60 * 60_000;
/**
 * The age from which no append can name a layer any more: the hour in which it may be sent, the two minutes after which
 * PostgreSQL refuses a message that was on its way (append-call.ts), and what a database may take to commit what it was
 * sent, with clocks that differ by a minute. Internal: only the operator's commands read it.
 */
export const UNNAMED_LAYER_SPAN_MS = PUSH_COMMIT_SPAN_MS + 10 * 60_000;
/**
 * How long a read waits for the node or a projection to catch up before the server answers 503. Internal: only a node
 * or a read model that stays behind reaches it.
 */
export const READ_WAIT_MS = 10_000;
/** How long a fetch may want a tip that its ref no longer has (docs/git-path.md, Wants). */
export const LEFT_TIP_SPAN_MS = 60_000;
/** The server closes a connection on which the body of a request or an answer makes no progress for this long. */
export const BODY_IDLE_MS = 120_000;
/** UTF-16 code units of a commit's message in lists of commits. */
export const COMMIT_LISTED_MESSAGE_LENGTH_MAX = 64 * KIB;
/** The size of all commits on one page of a list: above it, messages are cut to the second length, in characters. */
export const COMMITS_PAGE_BYTES_MAX = 2 * MIB;
export const COMMIT_CROWDED_MESSAGE_LENGTH_MAX = 8 * KIB;
/** Trust rules of one account. */
export const TRUST_RULES_MAX = 20;
/** Claims that a rule asks for, the length of their names, and of a pattern: that of the subject and of each claim. */
export const TRUST_RULE_CLAIMS_MAX = 10;
export const TRUST_RULE_CLAIM_NAME_LENGTH_MAX = 100;
export const TRUST_RULE_PATTERN_LENGTH_MAX = 500;
export const TRUST_RULE_WILDCARDS_MAX = 10;
/** The length of an identity token, as it was sent. */
export const IDENTITY_TOKEN_LENGTH_MAX = 16 * KIB;
/** The length of an identity token's `jti` and `kid`. */
export const IDENTITY_TOKEN_ID_LENGTH_MAX = 256;
/** How far the clocks of an identity token's issuer and of the service may be apart. */
export const IDENTITY_TOKEN_SKEW_MS = 60_000;
/** How long an exchanged token is valid. */
export const EXCHANGED_TOKEN_SPAN_MS = 15 * 60_000;
/** Refused exchanges of each rule that its owner sees: the newest. */
export const REFUSED_EXCHANGES_MAX = 20;
/** How long a refused exchange is kept. */
export const REFUSED_EXCHANGE_KEPT_MS = 30 * 24 * 60 * 60_000;
/** The length of URLs of webhooks, buckets and issuers, in UTF-16 code units. */
export const OUTGOING_URL_LENGTH_MAX = 2_048;
/** Storage buckets of one account (docs/interface.md, Storage buckets). */
export const STORAGE_BUCKETS_MAX = 20;
/** The length of a storage bucket's name in the account, in characters. */
export const STORAGE_BUCKET_NAME_LENGTH_MAX = 100;
/** Keys in a bucket have at most 1,024 bytes; what Strata adds to the prefix takes about 120. */
export const BUCKET_KEY_PREFIX_LENGTH_MAX = 256;
export const BUCKET_REGION_LENGTH_MAX = 50;
export const BUCKET_ACCESS_KEY_ID_LENGTH_MAX = 128;
export const BUCKET_SECRET_KEY_LENGTH_MAX = 256;
/** The name of a role: AWS allows 20 characters before and 575 after the number of the account. */
export const BUCKET_ROLE_ARN_LENGTH_MAX = 640;
/** Verifications that one account may begin within the span. */
export const BUCKET_CHECKS_OF_ACCOUNT_MAX = 20;
export const BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS = 10 * 60_000;
/** Errors of one bucket that are listed: the newest. */
export const BUCKET_ERRORS_LISTED_MAX = 1_000;
/** Bytes of a page's markup for the rows of a list; the other rows are on further pages. */
export const PAGE_ROWS_BYTES_MAX = 42_000;
/** Commits, and rows of other lists, on one page of the website. */
export const PAGE_COMMITS_MAX = 50;
/** Connections to one bucket. Internal: further requests wait. */
export const S3_CONNECTIONS_MAX = 32;
/** How long a connection to a bucket may take to open, and how long a layer waits for memory and for a connection. */
export const S3_CONNECT_SPAN_MS = 10_000;
/**
 * How long work behind pushes goes on without the objects of a bucket that failed, or beside the work for the others.
 * Internal: it is the pace of background work.
 */
export const BUCKET_BACKGROUND_REST_MS = 60_000;
/** How long the check of a bucket may take: somebody waits for it. */
export const BUCKET_CHECK_SPAN_MS = 60_000;
/** How much of what is wrong with a bucket is told, in UTF-16 code units. */
export const BUCKET_FAULT_MESSAGE_LENGTH_MAX = 500;
/** Addresses that are shown of what a token did in a repository within a minute. */
export const TOKEN_USE_ADDRESSES_MAX = 50;
/** Exports of one account's log that a node sends at the same time. */
export const LOG_EXPORTS_OF_ACCOUNT_MAX = 2;
