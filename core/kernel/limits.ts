/**
 * Every limit of the service. A name ends with its unit and bound. Each limit has a test at the limit and one past it.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/** The size of one append: 1 MiB is EventStoreDB's limit. Every adapter has it, so that logs can move between them. */
export const APPEND_SIZE_BYTES_MAX = MIB;
/**
 * In an append of several events, the log keeps each event's index and count; they count as this many bytes an event.
 */
export const APPEND_PLACE_BYTES = 64;
/** A node whose clock differs from its database's by more than this appends nothing. */
export const CLOCK_DIFFERENCE_MS_MAX = 60_000;
/** How long a process answers from memory without asking the log, if it cannot renew its lease meanwhile. */
export const READ_LEASE_SPAN_MS = 1_000;
export const READ_LEASE_SPAN_MS_MAX = 10_000;
/** Adapters keep stream names in an index. Entity ids are UUIDs, names of at most 39 characters, or digests. */
export const STREAM_NAME_BYTES_MAX = 768;
/** A line of an exported log: the largest event, with its digest, revision and escaped stream name. */
export const LOG_FILE_LINE_BYTES_MAX = APPEND_SIZE_BYTES_MAX + 4 * KIB;
/** Layers that one event removes; each takes about 90 bytes of the event. */
export const LAYERS_REMOVED_AT_ONCE_MAX = 10_000;
/** With this many layers a repository is compacted at once. Each layer costs a cold clone a request to the store. */
export const LAYERS_MAX = 64;
/** With this many layers a repository is compacted when `COMPACTION_IDLE_MS` have passed. */
export const LAYERS_AT_REST_MAX = 8;
export const COMPACTION_IDLE_MS = 60_000;
/** A node asks for a repository's compaction at most this often. */
export const COMPACTION_ASKED_AGAIN_MS = 2_000;
/**
 * Layers that a compaction replaced stay at least this long, whatever the retention is: requests under way still read
 * them.
 */
export const REPLACED_LAYERS_KEPT_MS_MIN = 60 * 60_000;
/** How long a read model knows of layers that were let go: they leave storage long before, unless no worker runs. */
export const LEAVING_LAYERS_KNOWN_MS = 7 * 24 * 60 * 60_000;
/** A repository is rewritten by purges once in this time. */
export const PURGE_REWRITING_INTERVAL_MS = 60 * 60_000;
/** What purges took out may take so many times the storage of the plan until it has left, and at least so much. */
export const WAITING_STORAGE_FACTOR = 2;
export const WAITING_STORAGE_BYTES_MIN = GIB;
/**
 * How long after a change its manifest is written: one for all changes of that time. With the looks at the log and at
 * the rows it is there within a minute.
 */
export const MANIFEST_DELAY_MS = 50_000;
/** Manifests that one process writes at once. One account has one of them, since its bucket may be slow. */
export const MANIFESTS_AT_ONCE_MAX = 4;
/** After a failure of the store, a manifest is tried again after this time, which doubles with each failure in a row. */
export const MANIFEST_RETRY_FIRST_MS = 60_000;
export const MANIFEST_RETRY_LAST_MS = 60 * 60_000;
/**
 * The memory of a node for repositories as they stood at earlier moments, in all and for one account. The one read last
 * stays, even if it alone is larger.
 */
export const PAST_REPOSITORIES_SIZE_BYTES_MAX = 64 * MIB;
export const PAST_REPOSITORIES_ACCOUNT_SIZE_BYTES_MAX = 32 * MIB;
/** How many of them a node reads from the log at once; one account has one of them read. */
export const PAST_REPOSITORIES_READ_AT_ONCE_MAX = 4;
/** The size of a manifest without its refs, which is read whole: one of 300,000 layers. */
export const MANIFEST_BYTES_MAX = 64 * MIB;
/** Objects beside the manifests of one repository that are looked at, at a time: a year of days has 730. */
export const MANIFEST_FILES_LISTED_MAX = 10_000;
/** Refs that no manifest names are of one that is being written, or of a writer that died: after this time they leave. */
export const MANIFEST_REFS_KEPT_MS = 60 * 60_000;
/** Compactions that one process makes at once: each takes a processor. */
export const COMPACTIONS_AT_ONCE_MAX = 2;
/** Buckets of users in which a process compacts at once, one repository in each. */
export const BUCKET_COMPACTIONS_AT_ONCE_MAX = 4;
/** Larger layers are not compacted again: rewriting one would cost more than its request saves. */
export const COMPACTED_LAYER_BYTES_MAX = GIB;
/** The layers of a repository of which a compaction drops what no ref reaches: it needs twice their size of disk. */
export const DROPPING_BYTES_MAX = 8 * GIB;
/** Tips left within the retention that such a compaction keeps; if there are more, it drops nothing. */
export const DROPPING_TIPS_MAX = 200_000;
/** Pushes that may commit between the check of such a compaction and its append, one after the other. */
export const DROPPING_RACES_MAX = 100;
/** Deleted repositories that a list names, the newest: each is folded from its own stream. */
export const DELETED_REPOSITORIES_LISTED_MAX = 100;
/** Purges of living repositories at once, of which an account has one: each reads and writes the whole repository. */
export const PURGES_AT_ONCE_MAX = 2;
/** How long a purge waits until webhooks were notified of a push that was made just now. */
export const PURGE_NOTIFICATION_WAIT_MS = 5_000;
/** Moves of refs of which a restoration finds out whether they are forced; the others count as forced. */
export const RESTORED_MOVES_COMPARED_MAX = 1_000;
/** When such a compaction is tried again after a failure: it may have read the whole repository. */
export const DROPPING_RETRY_MS = 6 * 60 * 60_000;
/** When it is tried again if webhooks were not notified yet of what it would drop. */
export const DROPPING_WAIT_MS = 60_000;
/** Events between two snapshots of a stream. */
export const SNAPSHOT_INTERVAL_EVENTS = 1_000;
/** Entries between two snapshots of the state of an account. */
export const ACCOUNT_SNAPSHOT_INTERVAL_ENTRIES = 4_000;
/** A state with a longer snapshot has none: it is folded from an earlier one. */
export const ACCOUNT_SNAPSHOT_LENGTH_MAX = 16 * MIB;
/** Refs of all repositories that the fold of an account keeps, about 250 bytes each. Their streams have the others. */
export const ACCOUNT_FOLD_REFS_MAX = 32_768;
/** Accounts whose state a node folds and sends at the same time, each for one request. */
export const ACCOUNT_STATES_AT_ONCE_MAX = 4;
/** Repositories whose refs, perhaps of the past, a node sends at the same time; of an account one. */
export const REPOSITORY_REFS_AT_ONCE_MAX = 4;
/**
 * A text in parts of at most this length is made whole before it is sent, so that what it is made of can be let go. A
 * longer one is sent while it is made, within `TEXT_SENDING_SPAN_MS`.
 */
export const TEXT_HELD_LENGTH_MAX = 8 * MIB;
export const TEXT_SENDING_SPAN_MS = 10 * 60_000;

export const REF_NAME_BYTES_MAX = 4_096;
/** A component of a ref's name is a file name in a clone: 255 bytes, less five for `.lock`. */
export const REF_COMPONENT_BYTES_MAX = 250;
/**
 * Memory that the refs of a repository take in a server, by `refMemoryBytes`: some 400,000 with names of 70 characters. A
 * server holds all refs of a repository at once, and each of their names is in the log for ever.
 */
export const REPOSITORY_REFS_MEMORY_BYTES_MAX = 192 * MIB;
export const PUSH_COMMANDS_MAX = 100_000;
export const PUSH_COMMANDS_BYTES_MAX = 16 * MIB;
/**
 * Different moves of refs, of one push, that git compares because they are far: each takes a process. Those that are near
 * are found by walks, of so many commits in all. And the time for all that git compares.
 */
export const PUSH_MOVES_FAR_MAX = 10_000;
export const PUSH_MOVES_WALKED_MAX = 100_000;
export const PUSH_COMPARING_MS_MAX = 5 * 60_000;
/** Memory for each byte of a list of commands: a short command takes 3.4 times its bytes, and half as much to be read. */
export const COMMAND_LIST_HELD_FACTOR = 4;
/**
 * The time from the end of a push's head to the end of its commands; what arrives of them at the least speed of a push
 * earns as much again.
 */
export const COMMAND_LIST_SPAN_MS = 60_000;
export const PUSH_OPTIONS_MAX = 100;
/** The size of all options of one push together. */
export const PUSH_OPTIONS_BYTES_MAX = 4 * KIB;
/**
 * Limits of single objects, inflated, that ordinary repositories do not reach. A push with a larger object is refused,
 * and a larger one that an older version accepted is not read: as deltas, a pack of some kilobytes can hold gigabytes.
 */
export const COMMIT_BYTES_MAX = MIB;
export const COMMIT_PARENTS_MAX = 1_000;
export const TAG_BYTES_MAX = MIB;
export const TREE_BYTES_MAX = 16 * MIB;
/** How many tags a ref may be peeled through: a tag of a tag of a tag counts three. */
export const TAG_CHAIN_LENGTH_MAX = 50;
/** Commits of one push that are large enough to have too many parents, so that each of them must be read. */
export const PUSH_LARGE_COMMITS_MAX = 10_000;
export const SHALLOW_LINES_MAX = 10_000;
export const PACK_SIZE_BYTES_MAX = 4 * GIB;
/** git index-pack takes about 170 bytes of memory for each object. */
export const PACK_OBJECTS_MAX = 10_000_000;
/**
 * The memory of the processes that check packs on a node, all together, unless STRATA_PUSH_MEMORY_BYTES_MAX says
 * otherwise, or the machine has less than four times as much; and the least that may be said.
 */
export const PUSH_MEMORY_BYTES_MAX = 640 * MIB;
export const PUSH_MEMORY_BYTES_MIN = 256 * MIB;
/** Small packs that are checked in process at once, each in 2 MiB of memory: on a node, and of one account. */
export const SMALL_PACKS_AT_ONCE_MAX = 24;
export const SMALL_PACKS_PER_ACCOUNT_MAX = 8;
/**
 * The processor time for checking one pack: that of a pack which was whole at once, and of others; and what each MiB that
 * was received adds. Of honest packs git checks a MiB in a tenth of a second, on slow machines in one.
 */
export const PUSH_CPU_SMALL_MS_MAX = 20_000;
export const PUSH_CPU_MS_MAX = 60_000;
export const PUSH_CPU_MS_PER_MIB = 3_000;
/** Bytes of packs that are arriving at a node, or wait there to be checked: in all, and of one account. */
export const PUSHES_ARRIVING_BYTES_MAX = 16 * GIB;
export const PUSHES_ARRIVING_ACCOUNT_BYTES_MAX = 8 * GIB;
/** The last of all, which only pushes of accounts that have few take. */
export const PUSHES_ARRIVING_KEPT_BYTES = 4 * GIB;
export const PUSHES_ARRIVING_FEW_BYTES = 256 * MIB;
/** A client that sends less than this a second, over this long, is cut; only the time that the server waits counts. */
export const PUSH_BYTES_PER_SECOND_MIN = 16 * KIB;
export const PUSH_PACE_SPAN_MS = 60_000;
/** The body of a fetch request, after inflation. */
export const FETCH_REQUEST_BYTES_MAX = 32 * MIB;
/**
 * Wants of one fetch: a clone wants as many as there are refs, and a checkout of a partial clone each file of a tree.
 */
export const FETCH_WANTS_MAX = 524_288;
/**
 * Haves of one fetch. Git begins with 16, doubles them up to 16,384, and then sends a tenth more each time (fetch-pack.c,
 * next_flush): with nothing in common, it has sent more than a million commits before one request holds so many.
 */
export const FETCH_HAVES_MAX = 131_072;
/** Lines of a request of protocol v2 before its arguments; git sends three, and its server options. */
export const REQUEST_CAPABILITIES_MAX = 1_000;
/** Refs to exclude in a shallow fetch: upload-pack resolves and walks each of them. */
export const FETCH_DEEPEN_NOT_MAX = 100;
/** The depth of the filter `tree:<depth>`: upload-pack gets it too, as uploadpackfilter.tree.maxDepth. */
export const FETCH_TREE_DEPTH_MAX = 16;
/**
 * From this many prefixes on, or this length of them in UTF-16 code units, ls-refs returns every ref, as git does from
 * 65,536 on: each prefix is searched for.
 */
export const LS_REFS_PREFIXES_MAX = 4_096;
export const LS_REFS_PREFIXES_LENGTH_MAX = MIB;
/** Lines with a prefix: git sends six for each ref that is fetched by a short name. */
export const LS_REFS_PREFIX_LINES_MAX = 131_072;
export const SERVER_OPTIONS_MAX = 100;
export const SERVER_OPTION_BYTES_MAX = 4_096;
/** A branch's order of commits is rebuilt instead of spliced if the change goes deeper than this. */
export const COMMIT_SPLICE_DEPTH_MAX = 10_000;
/** The memory for commits that the read model of histories has not written yet, for all repositories together. */
export const HISTORY_HELD_BYTES_MAX = 64 * MIB;
/** The work for one repository that the others wait for; longer work runs concurrently with theirs. */
export const HISTORY_TURN_COMMITS_MAX = 10_000;
export const HISTORY_TURN_ORDERED_COMMITS_MAX = 100_000;
export const HISTORY_TURN_SPAN_MS = 3_000;
/**
 * The limits of that concurrent work: beyond them the repository is parked. The largest histories have a million
 * commits.
 */
export const HISTORY_ORDERED_COMMITS_MAX = 3_000_000;
export const HISTORY_SPAN_MS = 30 * 60_000;

/**
 * Trees of more than a MiB that a node reads at once: in all, and of one repository. Each takes up to 100 MiB of memory
 * while it is inflated and searched.
 */
export const LARGE_TREES_AT_ONCE_MAX = 2;
export const LARGE_TREES_PER_REPOSITORY_MAX = 1;
export const CONTENTS_FILE_BYTES_MAX = 64 * MIB;
/** Names and paths of the entries on one page of a folder over REST. Each byte may take six in JSON. */
export const CONTENTS_NAMES_BYTES_MAX = 2 * MIB;
/** Files up to this size are read whole and may be cached in memory; larger ones are streamed. */
export const CONTENTS_BUFFERED_BYTES_MAX = MIB;
/** How much of a symbolic link's target is returned: Linux's PATH_MAX, beyond which no checkout can create the link. */
export const SYMLINK_TARGET_BYTES_MAX = 4_096;
/** Files that the diff of two commits lists. */
export const DIFF_FILES_MAX = 3_000;
/** Lines of one file, and bytes of one line, that a diff shows. */
export const DIFF_FILE_LINES_MAX = 2_000;
export const DIFF_LINE_BYTES_MAX = 4_096;
/** Bytes of all lines that a diff shows. */
export const DIFF_KEPT_BYTES_MAX = MIB;
/** Bytes of git's output that are read for a diff, and of one path in it. */
export const DIFF_READ_BYTES_MAX = 32 * MIB;
export const DIFF_PATH_BYTES_MAX = 64 * KIB;
/** Of all files that a diff lists. Each byte may take six in JSON. */
export const DIFF_PATHS_BYTES_MAX = 2 * MIB;
/**
 * What git may take for a diff: time, memory, and processor time. Beyond the memory, as two folders of half a million
 * files need, the diff says that it was cut.
 */
export const DIFF_SPAN_MS = 5_000;
export const DIFF_MEMORY_BYTES_MAX = 128 * MIB;
export const DIFF_CPU_SECONDS_MAX = 30;
/** Diffs that a node makes at once: in all, and for one account. */
export const DIFFS_AT_ONCE_MAX = 4;
export const DIFFS_PER_ACCOUNT_MAX = 2;
/** The same for git's other reads for pages: a walk over a million commits takes some 300 MiB. */
export const HISTORY_READ_MEMORY_BYTES_MAX = 512 * MIB;
export const HISTORY_READ_CPU_SECONDS_MAX = 60;
/** Files on one side that are compared with those on the other to find renames; beyond it only equal files are. */
export const DIFF_RENAME_FILES_MAX = 400;
/** How long git may walk for the last commits of a folder's entries, and how much of what it lists is read at first. */
export const LAST_COMMITS_SPAN_MS = 5_000;
export const LAST_COMMITS_FIRST_BYTES_MAX = 2 * MIB;
/**
 * The longest name of an entry that the website links and looks for the last commit of: Linux's PATH_MAX, beyond which no
 * checkout can create the file. Git bounds no name.
 */
export const LINKED_NAME_BYTES_MAX = 4_096;
/** Commits of one path that are listed, and how long git may walk for them. */
export const PATH_HISTORY_COMMITS_MAX = 10_000;
export const PATH_HISTORY_SPAN_MS = 5_000;
/** How long git may count how far two commits are apart, and how long a page of branches counts in all. */
export const APART_SPAN_MS = 2_000;
/** How long git may count the commits that one reaches. */
export const COUNT_SPAN_MS = 10_000;
/** How long git may walk for the commits between two refs. */
export const COMPARISON_SPAN_MS = 5_000;
/** Commits of one repository, and changes of its refs, from which a node knows which push brought a commit. */
export const PUSHED_COMMITS_MAX = 1_000_000;
export const PUSHED_TIPS_MAX = 200_000;
/** How long git may walk for them. */
export const PUSHED_SPAN_MS = 10_000;
/** Git processes that read for pages at once, beside diffs: in all, and for one account. */
export const HISTORY_READS_AT_ONCE_MAX = 8;
export const HISTORY_READS_PER_ACCOUNT_MAX = 4;
/** The same for walks over commits: for lists of them, and for the read models. */
export const WALKS_AT_ONCE_MAX = 16;
export const WALKS_PER_ACCOUNT_MAX = 4;
/** Archives that a node makes at once: in all, and for one account; and how long one waits for its turn. */
export const ARCHIVES_AT_ONCE_MAX = 8;
export const ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX = 2;
export const ARCHIVE_WAIT_MS = 5_000;
/**
 * What git may take for one archive. A commit of some kilobytes can name billions of files, and git lists all of them
 * in memory before it writes the first: a million files take 200 MiB.
 */
export const ARCHIVE_CPU_SECONDS_MAX = 120;
export const ARCHIVE_MEMORY_BYTES_MAX = 512 * MIB;
export const ARCHIVE_SPAN_MS = 30 * 60_000;
/** How long git may wait for the reader of an archive; what the reader takes at the slowest rate earns as much again. */
export const ARCHIVE_READER_WAIT_MS = 10_000;
export const ARCHIVE_READER_BYTES_PER_SECOND_MIN = 128 * KIB;
export const JSON_BODY_BYTES_MAX = MIB;
/** The same for a route that takes no token: who signs in by a device, or exchanges an identity token. */
export const PUBLIC_BODY_BYTES_MAX = 64 * KIB;
/** Values in such a body, lists and objects among them; a token names up to 10,000 repositories. */
export const JSON_BODY_VALUES_MAX = 12_000;
/** The time from the end of a request's head to the end of its JSON body. */
export const JSON_BODY_SPAN_MS = 60_000;
export const PAGE_LIMIT_DEFAULT = 50;
export const PAGE_LIMIT_MAX = 100;
/** The number of a page, and of items before one, that a client may ask for. Both fit into 32 bits, also multiplied. */
export const PAGE_NUMBER_MAX = 10_000_000;
export const PAGE_OFFSET_MAX = PAGE_NUMBER_MAX * PAGE_LIMIT_MAX;
/** Shorter JSON is sent as it is. */
export const COMPRESSED_ANSWER_BYTES_MIN = KIB;
/** Entries of a folder on one page of the API. */
export const CONTENTS_ENTRIES_MAX = 1_000;

/** Access tokens of one account that are neither revoked nor expired. Creations that race may exceed it. */
export const ACCESS_TOKENS_MAX = 1_000;
export const TOKEN_NAME_LENGTH_MAX = 100;
/** Repositories that one token may list: an event that lists them is much smaller than an append may be. */
export const TOKEN_REPOSITORIES_MAX = 10_000;
/** Repositories that the tokens of an account list in sum: one list of them is in an answer. */
export const TOKENS_REPOSITORIES_MAX = 100_000;
export const REPOSITORY_NAME_LENGTH_MAX = 100;
export const REPOSITORY_DESCRIPTION_LENGTH_MAX = 1_000;
export const USERNAME_LENGTH_MIN = 2;
export const USERNAME_LENGTH_MAX = 39;
export const PASSWORD_LENGTH_MIN = 10;
export const PASSWORD_LENGTH_MAX = 1_024;
export const EMAIL_LENGTH_MAX = 254;
/** The time from a right password to the second factor. */
export const PENDING_SIGN_IN_SPAN_MS = 5 * 60_000;
/** Sign-ins of one account that wait for the second factor; the oldest gives way. */
export const PENDING_SIGN_INS_MAX = 10;
/** Sessions of one account; the oldest gives way. */
export const SESSIONS_MAX = 50;
/** A browser's session ends this long after the sign-in, or when it was not used for the idle span. */
export const SESSION_SPAN_MS = 30 * 24 * 60 * 60_000;
export const SESSION_IDLE_SPAN_MS = 14 * 24 * 60 * 60_000;
/** How often the use of a session is noted at most. */
export const SESSION_SEEN_INTERVAL_MS = 10 * 60_000;
/** What steps of a sign-in keep in one session, in UTF-16 code units of its JSON. */
export const SESSION_KEPT_LENGTH_MAX = 4_096;
/** The path that a sign-in leads on to; a longer one is left out. */
export const NEXT_PATH_LENGTH_MAX = 2_048;
/** How long a browser is known by its sign-ins, and to how many accounts: the newest. */
export const KNOWN_BROWSER_SPAN_MS = 365 * 24 * 60 * 60_000;
export const KNOWN_ACCOUNTS_MAX = 5;
/** A message that one page of the website leaves for the next: encoded, it must fit into a cookie of 4,096 bytes. */
export const FLASH_LENGTH_MAX = 400;
/** The body of a form of the website. */
export const FORM_BYTES_MAX = 64 * KIB;
/** Second factors of one account, those that are still pending included. */
export const MFA_TOKENS_MAX = 5;
export const MFA_TOKEN_NAME_LENGTH_MAX = 100;
/** The time from the beginning of an enrolment, for which the password was asked, to its activation. */
export const MFA_ENROLMENT_SPAN_MS = 60 * 60_000;
/** The time to answer the challenge of a passkey. */
export const PASSKEY_CHALLENGE_SPAN_MS = 5 * 60_000;
/** Unanswered challenges of one account; a new one beyond them replaces the oldest. */
export const PASSKEY_CHALLENGES_MAX = 10;
/** The length of a browser's answer to a challenge, as JSON: credential id, key and signature take about 2,000. */
export const PASSKEY_ANSWER_LENGTH_MAX = 16 * KIB;
/** Web Authentication, section 4, allows no longer credential id. */
export const PASSKEY_CREDENTIAL_ID_BYTES_MAX = 1_023;
/** A key in COSE form: an RSA key of 4,096 bits takes 530 bytes. */
export const PASSKEY_PUBLIC_KEY_BYTES_MAX = 1_024;
/** The body of a form about a token, which may name as many repositories as a token lists. */
export const TOKEN_FORM_BYTES_MAX = 256 * KIB;
/** The time in which a device login must be granted and claimed. */
export const DEVICE_SESSION_SPAN_MS = 10 * 60_000;
/** The least time between two polls of one device login; each node measures it alone. */
export const DEVICE_POLL_INTERVAL_SECONDS = 2;
/** The length of a device's host name, in characters. */
export const DEVICE_HOSTNAME_LENGTH_MAX = 255;
/** How long after its end a device login still answers its polls; then it is unknown. */
export const DEVICE_SESSION_KEPT_MS = 60 * 60_000;
/** Device logins that wait for their user, in all; beyond it the oldest of the network that has most gives way. */
export const DEVICE_SESSIONS_PENDING_MAX = 10_000;
/** Device logins that one network, and a /48 of IPv6, may start within a minute (core/kernel/network.ts). */
export const DEVICE_SESSIONS_PER_MINUTE_MAX = 10;
export const DEVICE_SESSIONS_PER_MINUTE_WIDE_MAX = 50;
/**
 * Wrong passwords within the span: of one login from one network, of one login, of one network, of a /48 of IPv6, and of
 * one login in a browser that has signed in before (core/kernel/network.ts).
 */
export const SIGN_IN_FAILURES_SPAN_MS = 15 * 60_000;
export const SIGN_IN_FAILURES_PAIR_MAX = 10;
export const SIGN_IN_FAILURES_LOGIN_MAX = 100;
export const SIGN_IN_FAILURES_NETWORK_MAX = 100;
export const SIGN_IN_FAILURES_WIDE_MAX = 500;
export const SIGN_IN_FAILURES_BROWSER_MAX = 10;
/**
 * Failed tokens within a minute, counted by each node: of one network, of a /48 of IPv6, and of all. Beyond it a token
 * that the node does not know is looked up together with others, and one that is none costs no read of the log.
 */
export const FAILED_TOKENS_PER_MINUTE_MAX = 60;
export const FAILED_TOKENS_PER_MINUTE_WIDE_MAX = 300;
export const FAILED_TOKENS_PER_MINUTE_NODE_MAX = 1_000;
/** Tokens that one such lookup is for. */
export const TOKENS_LOOKED_UP_MAX = 1_000;
/**
 * Points that callers may spend within a minute of the clock, by `REQUEST_POINTS`: of an account, by each of its tokens,
 * and by its person on the website. `STRATA_RATE_FACTOR` multiplies these, and the two rates of an hour below.
 */
export const ACCOUNT_POINTS_PER_MINUTE_MAX = 3_000_000;
export const TOKEN_POINTS_PER_MINUTE_MAX = 2_400_000;
export const PERSON_POINTS_PER_MINUTE_MAX = 120_000;
/**
 * What requests cost in points: a read of the API, of refs by Git, or of a page; what appends or runs git; a fetch that
 * git answers, beside the read that it is too; and a push.
 */
export const REQUEST_POINTS = { read: 2, page: 10, costly: 20, fetch: 20, push: 40 } as const;
/** Requests that an account may begin within an hour of the clock that append to the log, and refs that it may change. */
export const ACCOUNT_EVENTS_PER_HOUR_MAX = 50_000;
/** A request counts once more for each so many bytes of its body: what is in it may come into the log. */
export const RECORDED_BODY_BYTES = 4 * KIB;
/** Those of the first that tokens leave to the person on the website, who may have to revoke them. */
export const ACCOUNT_EVENTS_KEPT_FOR_PERSON = 1_000;
/**
 * Of a plan's changes of a month: what tokens leave to the person; and how far beyond them pushes go that only delete
 * refs, since a leaked branch must be deleted before it can be purged.
 */
export const CHANGES_KEPT_FOR_PERSON = 1_000;
export const CHANGES_BEYOND_QUOTA_FOR_REF_DELETIONS = 1_000;
/** How long a request is known that was counted as a change: no request appends its events over a longer time. */
export const CHANGE_REQUEST_KNOWN_MS = 2 * 60 * 60_000;
export const ACCOUNT_REF_CHANGES_PER_HOUR_MAX = 250_000;
/** The log keeps names of refs for ever: a change of a longer one counts once more for each so many bytes. */
export const REF_CHANGE_NAME_BYTES = 256;
/**
 * Requests of an account that a node answers at once; and how many it may have while those of all accounts are so many
 * that the rest is kept for others.
 */
export const ACCOUNT_REQUESTS_AT_ONCE_MAX = 512;
export const REQUESTS_AT_ONCE_ROOMY_MAX = 1_536;
export const ACCOUNT_REQUESTS_AT_ONCE_TIGHT_MAX = 64;
/** Of those, requests of the API that are worked on; the others wait for their turn, holding nothing. */
export const ACCOUNT_REQUESTS_WORKED_ON_MAX = 32;
/** How often nodes tell each other what accounts spent with them, and from which part of a rate on they tell it. */
export const RATE_EXCHANGE_INTERVAL_MS = 3_000;
export const RATE_EXCHANGE_PART_MIN = 0.1;
/** Accounts that a node tells of at once: those that spent most. */
export const RATE_EXCHANGE_ACCOUNTS_MAX = 1_000;
/**
 * Connections of a node, and those of one network that is not the machine's own or a trusted proxy's, and of the /48 or
 * /24 around it (core/kernel/network.ts); and how many these may have while the node has so many that the rest is kept for
 * others. The one that was idle for longest gives way.
 */
export const CONNECTIONS_MAX = 8_192;
export const CONNECTIONS_ROOMY_MAX = 6_144;
export const CONNECTIONS_OF_NETWORK_MAX = 1_024;
export const CONNECTIONS_OF_NETWORK_TIGHT_MAX = 64;
export const CONNECTIONS_OF_WIDE_NETWORK_MAX = 2_048;
export const CONNECTIONS_OF_WIDE_NETWORK_TIGHT_MAX = 256;
/** How long the handshake of TLS may take. */
export const TLS_HANDSHAKE_SPAN_MS = 30_000;
/**
 * Requests of one connection that wait until those before them are answered, and from how many on the node reads no
 * more of it. One chunk may bring more: such a connection ends, at once if all connections have too many.
 */
export const PIPELINED_REQUESTS_MAX = 100;
export const PIPELINED_REQUESTS_READ_MAX = 8;
export const PIPELINED_REQUESTS_OF_NODE_MAX = 10_000;
/** What a piece of a body takes of memory beside its bytes, however short it is. */
export const BODY_CHUNK_HELD_BYTES = 512;
/** The time from the end of a fetch request's head to the end of its body. */
export const FETCH_BODY_SPAN_MS = 60_000;
/** Sign-ups that one network, and a /48 of IPv6, may try within an hour. */
export const SIGN_UPS_PER_HOUR_MAX = 20;
export const SIGN_UPS_PER_HOUR_WIDE_MAX = 100;
/** UTF-16 code units of a user agent that are kept. */
export const USER_AGENT_LENGTH_MAX = 256;
/**
 * Passwords that wait to be hashed or compared: those of strangers, and of people who are known (core/kernel/fair-turns.ts).
 * At this bound, and for who has waited this long, the service answers that it is busy.
 */
export const PASSWORDS_WAITING_MAX = 100;
export const PASSWORD_WAIT_MS = 15_000;
/** How long a compared password counts towards whose turn is next. */
export const PASSWORD_TURNS_SPAN_MS = 15 * 60_000;
/** The turns that a whole /24 of IPv4 or /48 of IPv6 has for one of a single network in it. */
export const WIDE_NETWORK_TURNS = 8;
/**
 * An erasure is gone through again after this time, which is longer than a push may take to append: what requests under
 * way stored after it is removed then.
 */
export const ERASURE_REPEATED_AFTER_MS = 2 * 60 * 60_000;
/** How long a closed account can be reopened. After it, the account is erased. */
export const ACCOUNT_CLOSED_SPAN_MS = 14 * 24 * 60 * 60_000;
/** The time that the poll which won a device login has to create the token; after it, any node may create it. */
export const DEVICE_TOKEN_SPAN_MS = 5_000;
/** Steps of one workflow that a node carries out concurrently. They append, so more would only delay other appends. */
export const WORKFLOW_STEPS_AT_ONCE_MAX = 32;
/** How long a claimed name stays reserved if its account was never created (docs/architecture.md, Claims). */
export const CLAIM_SPAN_MS = 10 * 60_000;
/** Webhooks of one account (docs/interface.md, Webhooks). */
export const WEBHOOKS_MAX = 20;
/** How long deliveries are signed with the previous secret too, after a rotation. */
export const WEBHOOK_SECRET_OVERLAP_MS = 24 * 60 * 60_000;
/**
 * How long after that the vault keeps the previous secret: a node whose clock is behind signs with it a little longer.
 */
export const WEBHOOK_SECRET_REMOVAL_MARGIN_MS = 10 * 60_000;
/** The waits between attempts, so there is one attempt more than waits (docs/workflows.md, Webhook deliveries). */
export const WEBHOOK_RETRY_WAITS_MS = [8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000] as const;
export const WEBHOOK_ATTEMPTS_MAX = WEBHOOK_RETRY_WAITS_MS.length + 1;
/**
 * The first series of attempts and the redeliveries: a delivery's row lists all attempts, and each rewrites the row.
 */
export const WEBHOOK_SERIES_MAX = 100;
/** A claimed attempt without a recorded result is made again after this: longer than an attempt and its append take. */
export const WEBHOOK_CLAIM_SPAN_MS = 60_000;
/** New commits that a push's payload lists, newest first. */
export const WEBHOOK_PAYLOAD_COMMITS_MAX = 100;
/**
 * UTF-16 code units of a commit's or tag's message, and of a person's name or address, in a payload. Cut texts end with
 * `…`.
 */
export const WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX = 64 * KIB;
export const WEBHOOK_PAYLOAD_NAME_LENGTH_MAX = 256;
/** Parents of one commit that a payload lists: the first ones. */
export const WEBHOOK_PAYLOAD_PARENTS_MAX = 100;
/** The size of one payload, and of all payloads of one push together: each is cut to an equal share. */
export const WEBHOOK_PAYLOAD_BYTES_MAX = 256 * KIB;
export const WEBHOOK_PUSH_PAYLOADS_BYTES_MAX = 128 * MIB;
/** The time from the lookup of the receiver's name to the end of its answer (docs/workflows.md, Webhook deliveries). */
export const WEBHOOK_ATTEMPT_SPAN_MS = 30_000;
/** How much of an answer's body is kept. */
export const WEBHOOK_ANSWER_BYTES_MAX = 16 * KIB;
/**
 * What the bodies of an account's deliveries may take, with 256 bytes more for each; the oldest ended
 * deliveries give way. The second ones are those of a plan without a quota of storage.
 */
export const WEBHOOK_ANSWERS_BYTES_MAX = 64 * MIB;
export const WEBHOOK_PAYLOADS_BYTES_MAX = 1_024 * MIB;
export const WEBHOOK_BODIES_UNLIMITED_BYTES_MAX = 10 * 1_024 * MIB;
/** Refs of one push that webhooks are notified of: the first ones in the push's own order. */
export const WEBHOOK_PUSH_REFS_MAX = 1_000;
/** Concurrent attempts: in all, to one receiver's host, and for one account. */
export const WEBHOOK_ATTEMPTS_AT_ONCE_MAX = 400;
export const WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX = 8;
export const WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX = 16;
/**
 * Deliveries of one account that were requested and have not ended. With so many its pushes are expanded no further,
 * until the second number of them is left.
 */
export const WEBHOOK_PENDING_DELIVERIES_MAX = 100_000;
export const WEBHOOK_PENDING_DELIVERIES_RESUMED = 90_000;
/** How many hours ahead pings and redeliveries beyond the budget of an hour may wait. */
export const WEBHOOK_BUDGET_HOURS_MAX = 24;
/**
 * Deliveries of one account that are still to be made, in rows for a push and a webhook, where a row counts as the
 * second number at least. With so many a further push is one row, and listed when there is room.
 */
export const WEBHOOK_WAITING_DELIVERIES_MAX = 1_000_000;
export const WEBHOOK_ROW_LEAST = 100;
/** Deliveries that wait for an hour fall due in groups of so many, spread over it evenly. */
export const WEBHOOK_BUDGET_GROUP = 100;
/** A first attempt counts once more for each so many bytes of its payload. */
export const WEBHOOK_BUDGET_PAYLOAD_BYTES = 8 * KIB;
/** How often an account whose pushes wait for room is looked at: at first, and at last while there is none. */
export const WEBHOOK_ROOM_LOOK_FIRST_MS = 5_000;
export const WEBHOOK_ROOM_LOOK_LAST_MS = 60_000;
/** Deliveries of one webhook in memory; the others wait in the read model. */
export const WEBHOOK_WINDOW_DELIVERIES_MAX = 100;
/** Pushes whose webhooks are being notified at the same time; at this limit the log is read no further. */
export const WEBHOOK_PUSHES_AT_ONCE_MAX = 1_000;
/** Commits, trees and tags, of each so many, of a refused pack among which the server looks for what leads to the refused object. */
export const EXPLAINED_OBJECTS_MAX = 200_000;
/** The bytes of them that it reads to find what refers to a missing object, beside the last one. */
export const EXPLAINED_BYTES_MAX = 64 * MIB;
/** How long it looks. */
export const EXPLAINING_MS_MAX = 30_000;
/** How much of the object's path it tells. */
export const EXPLAINED_PATH_LENGTH_MAX = 300;
/** New branches of the first push whose dates are read to choose the default branch; the others count as oldest. */
export const DATED_BRANCHES_MAX = 10_000;
/** New commits of one push in memory, which are assigned to its refs. */
export const WEBHOOK_PUSH_COMMITS_HELD_MAX = 10_000;
/** The size of those commits together, in UTF-16 code units of their texts; a parent counts 64. */
export const WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX = 32 * MIB;
/** Deliveries of a webhook whose outcomes its health counts: the newest. */
export const WEBHOOK_HEALTH_DELIVERIES_MAX = 20;
/** How long the bodies of deliveries are kept, unless a setting changes it. */
export const RETENTION_DAYS_DEFAULT = 30;
/**
 * The retention is at least this long, of 0 days too: attempts at a delivery go on for 17 minutes, and what a drop
 * rewrites for one forced push is a whole repository.
 */
export const RETENTION_MS_MIN = 60 * 60_000;
/**
 * What a delivery that has not ended needs stays beyond the retention for so long: the objects of a push whose webhooks
 * were not notified yet, and the payloads.
 */
export const PENDING_DELIVERY_KEPT_MS = 24 * 60 * 60_000;
/**
 * The time from a layer's put to the last moment at which its append may be sent; later ones are refused
 * (docs/architecture.md, invariant 2).
 */
export const PUSH_COMMIT_SPAN_MS = 60 * 60_000;
/** How long a push or a compaction that appended nothing takes at most to remove the layers that it stored. */
export const NEW_LAYERS_REMOVAL_MS_MAX = 5_000;
/** The age at which a layer that no event names is removed (docs/architecture.md, invariant 2). */
export const ORPHANED_LAYER_SPAN_MS = 7 * 24 * 60 * 60_000;
/**
 * The age from which no append can name a layer any more: the hour in which it may be sent, the two minutes after which
 * PostgreSQL refuses a message that was on its way (append-call.ts), and what a database may take to commit what it was
 * sent, with clocks that differ by a minute.
 */
export const UNNAMED_LAYER_SPAN_MS = PUSH_COMMIT_SPAN_MS + 10 * 60_000;
/** The lines of the log that name what crashes left in the stores of layers, each day. */
export const LISTED_LEFTOVERS_MAX = 1_000;
/** Buckets of users that a node sweeps at once, and how long and how far it reads the listing of each. */
export const BUCKET_SWEEPS_AT_ONCE_MAX = 8;
export const BUCKET_SWEEP_SPAN_MS = 10 * 60_000;
export const BUCKET_SWEEP_LAYERS_MAX = 1_000_000;
/** How long after its last `put` a vault record that no event names is removed (docs/architecture.md, invariant 5). */
export const UNNAMED_VAULT_RECORD_SPAN_MS = 24 * 60 * 60_000;
/** How long a read waits for the node or a projection to catch up before the server answers 503. */
export const READ_WAIT_MS = 10_000;
/** How long a fetch may want a tip that its ref no longer has (docs/git-path.md, Wants). */
export const LEFT_TIP_SPAN_MS = 60_000;
export const LEFT_TIPS_MAX = 10_000;
/** A time that is further ahead of this node's clock was written by a node whose clock was wrong. */
export const CLOCK_AHEAD_MS_MAX = 60_000;
/** The memory for cached answers to GET info/refs and ls-refs. */
export const REF_ANSWERS_CACHE_BYTES_MAX = 32 * MIB;
/** A longer answer about refs is never whole in memory, but made while its client reads it. */
export const WHOLE_REF_ANSWER_BYTES_MAX = MIB;
/** The memory for parsed requests of ls-refs, and the longest that is kept: git sends some 200 bytes. */
export const POLLED_REQUESTS_BYTES_MAX = 2 * MIB;
export const POLLED_REQUEST_BYTES_MAX = 4 * 1_024;
/** The memory for cached JSON answers of the API, by repository and revision. */
export const API_BODIES_CACHE_BYTES_MAX = 32 * MIB;
/** The server closes a connection on which the body of a request or an answer makes no progress for this long. */
export const BODY_IDLE_MS = 120_000;
/** A client that reads an answer more slowly than this, for this long, is disconnected. */
export const READER_BYTES_PER_SECOND_MIN = 16 * KIB;
export const READER_SPAN_MS = 60_000;
/** How much of a refused push is read and discarded, so that git reads the reason instead of a broken pipe. */
export const REFUSED_BODY_DRAIN_BYTES_MAX = 256 * MIB;
/** UTF-16 code units of a commit's message, and of a person's name, in lists of commits. */
export const COMMIT_LISTED_MESSAGE_LENGTH_MAX = 64 * KIB;
export const COMMIT_LISTED_NAME_LENGTH_MAX = 1_024;
/** The size of all commits on one page of a list: above it, messages are cut to the second length, in characters. */
export const COMMITS_PAGE_BYTES_MAX = 2 * MIB;
export const COMMIT_CROWDED_MESSAGE_LENGTH_MAX = 8 * KIB;
/**
 * The size of all commits in one list of branches: above it, commits longer than an equal share have their texts cut.
 */
export const BRANCHES_COMMITS_BYTES_MAX = 16 * MIB;
/** The size of all layers of a repository whose answers to clones are kept; those of larger ones are not. */
export const ANSWER_KEPT_BYTES_MAX = GIB;
/** Answers to more wants are not kept: their key is made from all of them, in order. */
export const ANSWER_KEPT_WANTS_MAX = 131_072;

/** Trust rules of one account. */
export const TRUST_RULES_MAX = 20;
/** Repositories that one rule may list. */
export const TRUST_RULE_REPOSITORIES_MAX = 100;
/** Claims that a rule asks for, the length of their names, and of a pattern: that of the subject and of each claim. */
export const TRUST_RULE_CLAIMS_MAX = 10;
export const TRUST_RULE_CLAIM_NAME_LENGTH_MAX = 100;
export const TRUST_RULE_PATTERN_LENGTH_MAX = 500;
export const TRUST_RULE_WILDCARDS_MAX = 10;
/** An identity token, as it was sent, and how deep its claims nest. */
export const IDENTITY_TOKEN_LENGTH_MAX = 16 * KIB;
export const IDENTITY_TOKEN_DEPTH_MAX = 10;
/** The length of an identity token's `jti` and `kid`. */
export const IDENTITY_TOKEN_ID_LENGTH_MAX = 256;
/** From an identity token's `iat` to its `exp`, and how far the clocks of issuer and service may be apart. */
export const IDENTITY_TOKEN_SPAN_MS = 24 * 60 * 60_000;
export const IDENTITY_TOKEN_SKEW_MS = 60_000;
/** How long an exchanged token is valid. */
export const EXCHANGED_TOKEN_SPAN_MS = 15 * 60_000;
/** How much later than an exchanged token the newest one must end before the read model of tokens forgets the first. */
export const EXCHANGED_TOKEN_KNOWN_MS = 24 * 60 * 60_000;
/** Exchanges that one network may try within a minute (core/kernel/network.ts). */
export const EXCHANGES_PER_MINUTE_MAX = 20;
/** Tokens that one account may try on the page of its trust rules within a minute. */
export const TOKEN_TRIALS_PER_MINUTE_MAX = 20;
/** One of an issuer's documents: its configuration, or its keys. */
export const ISSUER_DOCUMENT_BYTES_MAX = 64 * KIB;
/** The time for each of an issuer's documents. */
export const ISSUER_FETCH_SPAN_MS = 5_000;
/** Keys that an issuer lists, and the length of an RSA key: its modulus in base64url. */
export const ISSUER_KEYS_MAX = 100;
export const ISSUER_RSA_MODULUS_LENGTH_MAX = 1_366;
/** How long the keys of an issuer are kept, and how soon they are read again for a token that names an unknown key. */
export const ISSUER_KEYS_KEPT_MS = 10 * 60_000;
export const ISSUER_KEYS_KEPT_LEAST_MS = 60_000;
/** How long an issuer that failed is not asked again. */
export const ISSUER_FAILURE_KEPT_MS = 10_000;
/** Issuers whose keys a node keeps; and issuers that a node asks at once, in all and for one account. */
export const ISSUERS_KEPT_MAX = 200;
export const ISSUER_FETCHES_AT_ONCE_MAX = 32;
export const ISSUER_FETCHES_PER_ACCOUNT_MAX = 2;
/** Refused exchanges that a rule's owner sees: the newest of each rule, their length, and how long they are kept. */
export const REFUSED_EXCHANGES_MAX = 20;
export const REFUSED_EXCHANGE_TEXT_LENGTH_MAX = 200;
export const REFUSED_EXCHANGE_KEPT_MS = 30 * 24 * 60 * 60_000;

/** The length of URLs of webhooks, buckets and issuers, in UTF-16 code units. */
export const OUTGOING_URL_LENGTH_MAX = 2_048;
/**
 * In an answer to an outgoing request: the header fields of one head, the bytes of headers and trailers, and the number
 * of heads with status 1xx.
 */
export const OUTGOING_HEADERS_MAX = 100;
export const OUTGOING_HEADER_BYTES_MAX = 16 * KIB;
export const OUTGOING_INFORMATIONAL_MAX = 10;
/** The bytes that handshake, heads and framing of an answer may take, in addition to the body that is kept. */
export const OUTGOING_WIRE_OVERHEAD_BYTES_MAX = MIB;
/** How long the host of a URL is looked up when the URL is saved; a slower one is checked at its first use. */
export const TARGET_CHECK_SPAN_MS = 5_000;

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
/** Verifications at once on a node: in all, and of one account. */
export const BUCKET_CHECKS_AT_ONCE_MAX = 8;
export const BUCKET_CHECKS_AT_ONCE_OF_ACCOUNT_MAX = 2;
/** Errors of one bucket that are listed, the newest; and how much older than the newest of all buckets they may be. */
export const BUCKET_ERRORS_LISTED_MAX = 1_000;
export const BUCKET_ERROR_LISTED_MS = 30 * 24 * 60 * 60_000;
/** How long an error of a bucket is not recorded again for the same repository, operation and code. */
export const BUCKET_ERROR_INTERVAL_MS = 15 * 60_000;
/** Errors of one bucket that are recorded on one day. */
export const BUCKET_ERRORS_OF_DAY_MAX = 100;
/** Errors of buckets that a node records at once; what fails meanwhile beside them is not recorded. */
export const BUCKET_ERRORS_AT_ONCE_MAX = 32;

/** Markdown and code that pages show rendered, in UTF-16 code units; longer texts are shown plain. */
export const RENDERED_MARKDOWN_LENGTH_MAX = 256 * KIB;
export const RENDERED_CODE_LENGTH_MAX = 512 * KIB;
/** The time to render one text; then its thread is ended and the page shows the text plain. */
export const RENDERING_SPAN_MS = 1_500;
/** The time that a text waits for its turn to be rendered. */
export const RENDERING_WAIT_MS = 1_500;
/** Texts rendered at once on a node; one person has all but one of these threads at most. */
export const RENDERING_THREADS_MAX = 2;
/** Texts that wait to be rendered: of one person, and in all. */
export const RENDERINGS_OF_PERSON_MAX = 8;
export const RENDERINGS_WAITING_MAX = 64;
/** The memory for rendered texts. */
export const RENDERED_CACHE_BYTES_MAX = 32 * MIB;
/** The bytes of a page, without what it loads. */
export const PAGE_BYTES_MAX = 60_000;
/** Bytes of a page's markup for the rows of a list; the other rows are on further pages. */
export const PAGE_ROWS_BYTES_MAX = 42_000;
/** Bytes of a page's markup for a text of a repository; the rest is on further pages. */
export const PAGE_TEXT_BYTES_MAX = 44 * KIB;
/** The same for somebody who asks for longer pages: what takes a few milliseconds of the event loop. */
export const PAGE_WHOLE_BYTES_MAX = 256 * KIB;
/** Components of a ref's short name in an address of the website; deeper refs are read by other ways only. */
export const REF_ADDRESS_COMPONENTS_MAX = 64;
/** Entries of a folder, and commits, on one page of the website. */
export const PAGE_ENTRIES_MAX = 100;
export const PAGE_COMMITS_MAX = 50;
/** What the website keeps of what it read: the memory for entries of folders and for commits of paths, and counts. */
export const KNOWN_FOLDERS_BYTES_MAX = 16 * MIB;
export const KNOWN_PATHS_BYTES_MAX = 16 * MIB;
export const KNOWN_APART_MAX = 20_000;
export const KNOWN_COMPARISONS_COMMITS_MAX = 100_000;
/** The memory for diffs: a large one is of some megabytes. */
export const KNOWN_DIFFS_BYTES_MAX = 32 * MIB;
/** The memory for which push brought which commit. */
export const KNOWN_PUSHES_BYTES_MAX = 64 * MIB;

/** How long an identity token of this service holds. */
export const IDENTITY_TOKEN_SPAN_SECONDS = 300;
/** How long anybody may keep the public keys of identity tokens. */
export const PUBLIC_KEYS_CACHE_SECONDS = 300;
/** How long a set of keys signs before the next one does. */
export const SIGNING_KEYS_SPAN_MS = 90 * 86_400_000;
/** How long a set is public before it signs: on the schedule, for those who keep keys longer than they may; at once. */
export const SIGNING_KEYS_LEAD_MS = 86_400_000;
export const SIGNING_KEYS_SHORT_LEAD_MS = 10 * 60_000;
/** How long a set stays public after it signed: its last token ends, every copy of the keys, and clocks differ. */
export const SIGNING_KEYS_OVERLAP_MS = 15 * 60_000;
/** How old a node's knowledge of the sets may be. */
export const SIGNING_KEYS_READ_INTERVAL_MS = 60_000;
/** How old a node's knowledge of the keys of checkpoints may be. */
export const LOG_KEYS_READ_INTERVAL_MS = 60_000;
/** How long anybody may keep the list of keys: a new key signs at once, and a verifier that lacks it reads again. */
export const LOG_KEYS_CACHE_SECONDS = 60;
/** A checkpoint is some 250 bytes; its origin holds a host name of at most 253. */
export const CHECKPOINT_SIZE_BYTES_MAX = 2_048;
/** Sets that are public at once; each takes about 700 bytes of the answer. */
export const SIGNING_KEY_SETS_MAX = 6;

/** How long the credentials of a role in a user's cloud hold: every role allows an hour. */
export const ROLE_SESSION_SECONDS = 3_600;
/** Credentials that end sooner than this are replaced meanwhile; those that end sooner than the second are not used. */
export const ROLE_RENEWAL_MS = 5 * 60_000;
export const ROLE_USE_MIN_MS = 60_000;
/** The time for one request to a cloud's token service, and for all of them when it must be asked again. */
export const ROLE_REQUEST_SPAN_MS = 10_000;
export const ROLE_REQUESTS_SPAN_MS = 25_000;
/** Connections to a cloud's token service. */
export const ROLE_CONNECTIONS_MAX = 16;
/** Roles whose credentials a node keeps, about 2 KiB each. */
export const ROLES_KEPT_MAX = 4_000;
/** A role that was refused is not asked for again for this long. */
export const ROLE_REFUSAL_KEPT_MS = 5_000;

/** A layer up to this size is one request to a bucket; a larger one is sent in parts of this size. */
export const S3_PART_BYTES = 8 * MIB;
/** What a bucket may answer, other than with an object: a page of 1,000 keys takes at most about 3 MiB. */
export const S3_ANSWER_BYTES_MAX = 4 * MIB;
/** Connections to one bucket. */
export const S3_CONNECTIONS_MAX = 32;
/** The parts of layers in memory that wait for one bucket. */
export const S3_HELD_BYTES_MAX = 64 * MIB;
/** How long a connection to a bucket may take to open, and how long a layer waits for memory and for a connection. */
export const S3_CONNECT_SPAN_MS = 10_000;
/** From the start of a request to the end of its answer; for a read of a layer, to the start of its bytes. */
export const S3_ANSWER_SPAN_MS = 60_000;
/** How long a bucket may send nothing in the middle of a layer, and how long its reader may take nothing. */
export const S3_STALLED_SPAN_MS = 30_000;
/**
 * After this long no request to a bucket is repeated. It is shorter than the wait for an answer: whoever pushes has then
 * waited for that long in vain, and would wait as long again.
 */
export const S3_RETRY_SPAN_MS = 30_000;
/** Connections after the first that may break within one read of a layer. */
export const S3_READ_RESUMES_MAX = 10;
/** Buckets of users whose store a node keeps, and for how long: a connection with other credentials has another. */
export const BUCKET_STORES_MAX = 1_000;
export const BUCKET_STORES_SPAN_MS = 60 * 60_000;
/** Calls to one bucket of a user that a node makes at once, those that wait included; further ones fail at once. */
export const BUCKET_CALLS_MAX = 128;
/** Of these, the calls that are made while the bucket does not answer; the others wait for their outcome. */
export const BUCKET_TRIALS_MAX = 4;
/** A call that got its answer, but whose body nobody begins to read for so long, counts no more. */
export const BUCKET_UNREAD_MS = 60_000;
/**
 * Work behind pushes waits this long for a bucket of a user, and tries it this many times; then it goes on without the
 * objects, or beside the others, for as long as the last span.
 */
export const BUCKET_BACKGROUND_WAIT_MS = 10_000;
export const BUCKET_BACKGROUND_TRIES_MAX = 3;
export const BUCKET_BACKGROUND_REST_MS = 60_000;
/** How long the check of a bucket may take: somebody waits for it. */
export const BUCKET_CHECK_SPAN_MS = 30_000;
/** How much of what is wrong with a bucket is told, in UTF-16 code units. */
export const BUCKET_FAULT_MESSAGE_LENGTH_MAX = 500;

/** Pairs of reader and repository that a `UsageRecorded` names; the bytes of further ones are in its sums. */
export const USAGE_READERS_MAX = 1_000;
/** Such pairs, of all accounts, that the daily sums hold in memory: some 60 MB. Then a part of the log is summed first. */
export const USAGE_SUMS_AT_ONCE_MAX = 200_000;

/** Addresses that are shown of what a token did in a repository within a minute. */
export const TOKEN_USE_ADDRESSES_MAX = 50;
/** Different addresses of an account's readers that a node records in a minute: each is a record of the vault. */
export const TRANSFER_ADDRESSES_MAX = 50;
/** How often an event of transfer names addresses: one may have read as many readers in many repositories. */
export const TRANSFER_ADDRESS_REFS_MAX = 1_000;

/** Entries of an account's log on one page of the API. */
export const ENTRIES_PAGE_LIMIT_DEFAULT = 100;
export const ENTRIES_PAGE_LIMIT_MAX = 1_000;
/** The length of a page's entries, after which it ends early; one entry may be as large as an append. */
export const ENTRIES_PAGE_LENGTH_MAX = 4 * MIB;
/** Entries that a page or an export holds in memory at once. */
export const ENTRIES_READ_AT_ONCE_MAX = 32;
/** The length of the entries that a page, an export or a fold reads at once, unless one alone is longer. */
export const ENTRIES_READ_LENGTH_MAX = 2 * MIB;
/** Exports of accounts' logs that a node sends at once, and those of one account: each may be read slowly for hours. */
export const LOG_EXPORTS_AT_ONCE_MAX = 16;
export const LOG_EXPORTS_OF_ACCOUNT_MAX = 2;

/** The metrics are made once for all who ask within this span, and whether a node is ready once within the other. */
export const METRICS_AGE_MS_MAX = 1_000;
export const READINESS_AGE_MS_MAX = 250;
