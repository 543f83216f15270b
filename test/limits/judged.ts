/**
 * The tests that hold the limits which callers can reach. A limit that no caller can reach says so in its comment,
 * after `Internal:`.
 *
 * Invariants: a test is named here only if it goes to the limit and one past it, or to one of the two as it is noted.
 * Where another program or Node holds a limit, such as the processor time of git or the timeout of a socket, the test
 * at it shows that the figure is given, and the test past it may go past a smaller one. A name after a path is that of
 * one file among several that have a constant of this name.
 */
import type { LimitTests } from './judging.ts';

export const LIMIT_TESTS: LimitTests = {
  'test/apps/admin/options.test.ts': {
    'has 1 to 100 characters and stands in one line': 'OPERATOR_NAME_LENGTH_MAX',
    'has 1 to 500 characters and stands in one line': 'LOSS_REASON_LENGTH_MAX',
  },
  'test/adapters/git/archive.test.ts': {
    'runs under the limits of archives, and gives way to other processes':
      'at:ARCHIVE_CPU_SECONDS_MAX at:ARCHIVE_MEMORY_BYTES_MAX',
    'that takes more processor time than it may ends with an error': 'past:ARCHIVE_CPU_SECONDS_MAX',
    'of more files than git may list in its memory ends with an error, and the next one is made':
      'past:ARCHIVE_MEMORY_BYTES_MAX',
  },
  'test/adapters/git/object-history.test.ts': {
    'is read by git within its limits of memory, processor time and time':
      'at:HISTORY_READ_MEMORY_BYTES_MAX at:DIFF_CPU_SECONDS_MAX at:DIFF_MEMORY_BYTES_MAX at:adapters/git/object-history.ts#COUNT_SPAN_MS at:ARCHIVE_SPAN_MS at:COMMIT_TEXT_SPAN_MS',
    'gives up a diff that takes more memory than it may': 'past:DIFF_MEMORY_BYTES_MAX',
    'finds renames among as many files as the limit, and only of equal files among more': 'DIFF_RENAME_FILES_MAX',
    'refuses a path that git cannot be asked for, and leaves it out of a list of several': 'ARGUMENTS_BYTES_MAX',
    'asks git who brought the lines at a path as long as the limit, whatever its bytes are, and at no longer one':
      'BLAMED_PATH_BYTES_MAX',
  },
  'test/adapters/git/object-search.test.ts': {
    'is read by git within its limits of memory, processor time and time':
      'at:SEARCH_CPU_SECONDS_MAX at:SEARCH_MEMORY_BYTES_MAX at:FILE_LISTING_CPU_SECONDS_MAX at:FILE_LISTING_MEMORY_BYTES_MAX',
  },
  'test/adapters/git/packs/ancestry.test.ts': {
    'are refused when more than ${PUSH_MOVES_FAR_MAX} different ones are far, before git compares any':
      'PUSH_MOVES_FAR_MAX',
    'are walked in turns of the event loop, and no further than a bounded number of commits in all':
      'PUSH_MOVES_WALKED_MAX',
    'are compared exactly, near and far, forwards and forced':
      'at:PUSH_COMPARING_MS_MAX at:HISTORY_READ_CPU_SECONDS_MAX',
    'are refused when git takes too long, and given up when the client leaves': 'past:PUSH_COMPARING_MS_MAX',
  },
  'test/adapters/git/packs/entry-header.test.ts': {
    'The size of an object takes at most as many bytes as all of git reads, with or without zeros before it':
      'adapters/git/packs/entry-header.ts#SIZE_BYTES_MAX',
  },
  'test/adapters/git/process/git-commands.test.ts': {
    'A command has the longest time, unless it names a shorter one': 'at:WALL_MS_MAX',
  },
  'test/adapters/git/process/process-runner.test.ts': {
    'bounds memory, file size, processor time and core files':
      'past:HISTORY_READ_CPU_SECONDS_MAX past:HISTORY_READ_MEMORY_BYTES_MAX past:DIFF_CPU_SECONDS_MAX past:SEARCH_CPU_SECONDS_MAX past:FILE_LISTING_CPU_SECONDS_MAX past:FILE_LISTING_MEMORY_BYTES_MAX',
    'bounds how much it keeps of standard error and of collected output': 'COLLECTED_OUTPUT_BYTES_MAX',
    'kills a process that exceeds its time':
      'past:adapters/git/object-history.ts#COUNT_SPAN_MS past:ARCHIVE_SPAN_MS past:COMMIT_TEXT_SPAN_MS past:WALL_MS_MAX past:SEARCH_SPAN_MS past:FILE_LISTING_SPAN_MS',
  },
  'test/adapters/git/receiving/admission.test.ts': {
    'are bounded for each account and for all, to the byte, and count until their push ends':
      'PUSHES_ARRIVING_BYTES_MAX PUSHES_ARRIVING_ACCOUNT_BYTES_MAX',
    'is given for as much processor time as what was received is worth, and no more':
      'at:PUSH_CPU_SMALL_MS_MAX at:PUSH_CPU_MS_MAX at:PUSH_CPU_MS_PER_MIB',
    'is given back when a pack of 50 KB takes more processor time than it is worth':
      'past:PUSH_CPU_SMALL_MS_MAX past:PUSH_CPU_MS_MAX past:PUSH_CPU_MS_PER_MIB',
    'is never given out beyond the budget, and an account leaves some of it to others': 'PUSH_MEMORY_BYTES_MAX',
    'is not taken by two accounts: those with few bytes have the last of it':
      'PUSHES_ARRIVING_KEPT_BYTES PUSHES_ARRIVING_FEW_BYTES',
  },
  'test/adapters/git/receiving/explained-objects.long.test.ts': {
    'the last is looked at for the way to a bad object, and not one more': 'EXPLAINED_OBJECTS_MAX',
  },
  'test/adapters/git/receiving/find-referrer.test.ts': {
    'goes on until ${EXPLAINED_BYTES_MAX} bytes were read, and not beyond': 'EXPLAINED_BYTES_MAX',
    'has ${EXPLAINING_MS_MAX} ms, after which the refusal stays as git gave it': 'EXPLAINING_MS_MAX',
  },
  'test/adapters/git/receiving/large-commits.long.test.ts': {
    'a push may bring as many commits with room for too many parents as the limit says, and no more':
      'PUSH_LARGE_COMMITS_MAX',
  },
  'test/adapters/git/receiving/pack-refusal.test.ts': {
    'tells what git says up to its limit, and not one character more': 'DETAIL_LENGTH_MAX',
  },
  'test/adapters/git/receiving/receiving.test.ts': {
    'accepts a ${kind} of the largest size, and refuses one a byte larger, ${how}':
      'COMMIT_BYTES_MAX TAG_BYTES_MAX core/git/object-bounds.ts#TREE_BYTES_MAX',
    'accepts a commit of a thousand parents, and refuses one of more': 'COMMIT_PARENTS_MAX',
    'follows tags of tags to the bound and no deeper': 'TAG_CHAIN_LENGTH_MAX',
    'tells ${EXPLAINED_PATH_LENGTH_MAX} characters of the path, and not one more': 'EXPLAINED_PATH_LENGTH_MAX',
    'refuses a header of 2^32-1 objects, or of one above the limit, before git is started': 'past:PACK_OBJECTS_MAX',
    'refuses one byte more than the limit, and accepts a pack of exactly the limit': 'past:PACK_SIZE_BYTES_MAX',
  },
  'test/adapters/http-egress/answers.test.ts': {
    'may have as many headers, and as large ones, as the limits allow':
      'OUTGOING_HEADERS_MAX OUTGOING_HEADER_BYTES_MAX',
    'may follow a few informational answers, but not a flood of them': 'OUTGOING_INFORMATIONAL_MAX',
    'may take as many bytes on the wire beside its body as the limit, and not one more':
      'OUTGOING_WIRE_OVERHEAD_BYTES_MAX',
  },
  'test/adapters/http-egress/egress.test.ts': {
    'is looked up to the end of its time when it is saved, and one found later may be saved': 'TARGET_CHECK_SPAN_MS',
  },
  'test/adapters/http-egress/target.test.ts': {
    'may be as long as the limit, and not longer': 'OUTGOING_URL_LENGTH_MAX',
  },
  'test/adapters/jose/issuer-keys.test.ts': {
    'are only those whose use is cheap and that are public': 'ISSUER_RSA_MODULUS_LENGTH_MAX RSA_EXPONENT_LENGTH_MAX',
    'are kept for as many issuers as the limit, the one that was used last longest': 'ISSUERS_KEPT_MAX',
    'are asked for within the time for a document, and are not there when that is over': 'ISSUER_FETCH_SPAN_MS',
  },
  'test/adapters/node/password-hasher.test.ts': {
    'a bounded number of passwords is hashed at the same time, a bounded number waits, and one more is refused without being begun':
      'PASSWORDS_WAITING_MAX',
    'is answered that the service is busy when its turn has not come in time': 'PASSWORD_WAIT_MS',
  },
  'test/adapters/postgres/append-queue.test.ts': {
    'are as many as the limit, and one more is refused': 'QUEUED_APPENDS_MAX',
    'have as many bytes as the limit, and one byte more is refused': 'QUEUED_SIZE_BYTES_MAX',
  },
  'test/adapters/s3/bounded-handler.test.ts': {
    'An answer of a bucket is read up to its limit, and one byte more is refused': 'S3_ANSWER_BYTES_MAX',
  },
  'test/adapters/s3/faults.test.ts': {
    'gives up a read after as many broken connections as the limit says, and not before': 'S3_READ_RESUMES_MAX',
  },
  'test/adapters/s3/spans.test.ts': {
    'may take its time for an answer, to the last moment': 'S3_ANSWER_SPAN_MS',
    'keeps a request waiting for a connection to the last moment of its span': 'S3_CONNECT_SPAN_MS',
    'may send nothing in the middle of a layer to the last moment; then the rest is asked for again':
      'S3_STALLED_SPAN_MS',
    'is asked again after a failure to the last moment of the span, and no more when that is over': 'S3_RETRY_SPAN_MS',
    'has as long as its check may take, whatever it does': 'BUCKET_CHECK_SPAN_MS',
  },
  'test/adapters/sts/assume-role.test.ts': {
    'is asked within the time for one request, and for all of them': 'at:ROLE_REQUEST_SPAN_MS at:ROLE_REQUESTS_SPAN_MS',
    'ends in time if nothing comes, or only the beginning of an answer':
      'past:ROLE_REQUEST_SPAN_MS past:ROLE_REQUESTS_SPAN_MS',
    'is refused with a code for each reason, once where a repeat cannot help': 'RETRIES_MAX',
  },
  'test/adapters/webauthn/passkeys.test.ts': {
    'is read from an answer of at most the limit': 'PASSKEY_ANSWER_LENGTH_MAX',
    'has an id of at most the limit': 'PASSKEY_CREDENTIAL_ID_BYTES_MAX',
    'has an RSA key of at least 2,048 bits, and a key of at most the limit':
      'PASSKEY_PUBLIC_KEY_BYTES_MAX RSA_MODULUS_BYTES_MIN',
  },
  'test/apps/api/access-tokens.test.ts': {
    'are a thousand of an account, all listed, and the next is refused until one is revoked': 'ACCESS_TOKENS_MAX',
    'take a list of 10,000 repositories, and refuse one more for its length': 'TOKEN_REPOSITORIES_MAX',
    'name unknown repositories up to the limit': 'IDS_SHOWN_MAX',
    'refuse a wrong text with its place, up to the limit of its steps': 'LOC_DEPTH_MAX',
  },
  'test/apps/api/account-export.test.ts': {
    'are bounded in all and for an account, and are freed once': 'LOG_EXPORTS_AT_ONCE_MAX LOG_EXPORTS_OF_ACCOUNT_MAX',
  },
  'test/apps/api/account-log.test.ts': {
    'refuses what is no filter, and pages past the limit': 'ENTRIES_PAGE_LIMIT_MAX',
    'ends a page of large entries early, so that a short request does not make an answer without bounds':
      'ENTRIES_PAGE_LENGTH_MAX',
  },
  'test/apps/api/activity.test.ts': {
    'answers pages': 'PAGE_LIMIT_MAX',
  },
  'test/apps/api/sign-ins.test.ts': {
    'refuses what is no page': 'SIGN_IN_DAYS_LIMIT_MAX',
  },
  'test/apps/api/compression.test.ts': {
    'An answer is compressed from its least length on, whether it is kept or made for one caller':
      'COMPRESSED_ANSWER_BYTES_MIN',
  },
  'test/apps/api/contents.test.ts': {
    'a folder is listed in pages': 'CONTENTS_ENTRIES_MAX',
  },
  'test/apps/api/deleted-repositories.test.ts': {
    'is among the last ${DELETED_REPOSITORIES_LISTED_MAX} in the list': 'DELETED_REPOSITORIES_LISTED_MAX',
  },
  'test/apps/api/device-login.test.ts': {
    'takes a hostname of 1 to 255 characters': 'DEVICE_HOSTNAME_LENGTH_MAX',
    'answers 429 to a poll before the interval, without delaying the next one': 'DEVICE_POLL_INTERVAL_SECONDS',
    'can be begun ten times a minute by one address, counted from the first': 'DEVICE_SESSIONS_PER_MINUTE_MAX',
    'can be begun fifty times a minute by all networks of a /48': 'DEVICE_SESSIONS_PER_MINUTE_WIDE_MAX',
  },
  'test/apps/api/errors.test.ts': {
    'a body of 1 MiB is read, one byte more is 413': 'JSON_BODY_BYTES_MAX',
  },
  'test/apps/api/hostile-http.test.ts': {
    'a body of many wrong values is refused, and its answer is small': 'JSON_BODY_VALUES_MAX',
  },
  'test/apps/api/json-body.test.ts': {
    'are up to ${OBJECT_MEMBERS_MAX} members of one object, and any number of many': 'OBJECT_MEMBERS_MAX',
  },
  'test/apps/api/input.test.ts': {
    'are named up to their limit': 'FAULTS_NAMED_MAX',
    'name unknown members up to their limit': 'UNKNOWN_NAMED_MAX',
    'name a member of the greatest length whole, and cut a longer one': 'STEP_LENGTH_MAX',
    'A size of a tree is taken up to the limit, and an entry in it, and refused beyond it': 'TREE_SIZE_MAX',
  },
  'test/apps/api/json-text.test.ts': {
    'may be sent to the last moment of its time, and no longer': 'TEXT_SENDING_SPAN_MS',
  },
  'test/apps/front-door/reader-pace.test.ts': {
    'may rest for the time that it has, and no longer': 'ARCHIVE_READER_WAIT_MS',
    'may be as slow as the slowest for any time, and no slower': 'ARCHIVE_READER_BYTES_PER_SECOND_MIN',
  },
  'test/apps/api/refs.test.ts': {
    'changes up to ${REF_UPDATES_MAX} refs': 'REF_UPDATES_MAX',
    'has a body of 8 MiB and 100,000 values, and no more': 'PUSH_BODY_BYTES_MAX PUSH_BODY_VALUES_MAX',
    'of any head is decided again on each new one, so often and no more': 'REDECISIONS_MAX',
  },
  'test/apps/api/repeated-changes.test.ts': {
    'has a key of 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} printable characters, quoted or not': 'IDEMPOTENCY_KEY_LENGTH_MAX',
  },
  'test/apps/api/repositories.test.ts': {
    'are listed by name without regard to case, in pages': 'at:PAGE_NUMBER_MAX',
    'refuse pages and limits outside their bounds with 422 and the parameter': 'past:PAGE_NUMBER_MAX',
  },
  'test/apps/api/restore.test.ts': {
    'finds out of ${RESTORED_MOVES_COMPARED_MAX} moves whether they are forced, and takes further ones for it':
      'RESTORED_MOVES_COMPARED_MAX',
  },
  'test/apps/api/sent-parts.test.ts': {
    'has parts up to their number and size, and JSON up to its own, and no more':
      'COMMIT_PARTS_MAX COMMIT_PART_BYTES_MAX',
  },
  'test/apps/api/storage-buckets.test.ts': {
    'are verified so often in a span, and no more': 'BUCKET_CHECKS_OF_ACCOUNT_MAX BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS',
    'tell what is wrong with them whole up to the limit, and cut a longer text': 'BUCKET_FAULT_MESSAGE_LENGTH_MAX',
  },
  'test/apps/api/trust-rules.test.ts': {
    'hold as many repositories as the limit, and refuse one more': 'TRUST_RULE_REPOSITORIES_MAX',
    'are at most twenty in an account, even if thirty are created at the same time': 'TRUST_RULES_MAX',
  },
  'test/apps/api/webhook-deliveries.test.ts': {
    'beyond the budget of the hour stay pending, and say so and until when; beyond a day of them none is taken':
      'WEBHOOK_BUDGET_HOURS_MAX',
  },
  'test/apps/front-door/archive-lane.test.ts': {
    'of one account are refused immediately beyond its share, until one is read': 'ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX',
    'wait for a place of the node, and are refused when none comes free in time':
      'ARCHIVES_AT_ONCE_MAX ARCHIVE_WAIT_MS',
  },
  'test/apps/front-door/body-budget.test.ts': {
    'without an account sends at most 64 KiB': 'PUBLIC_BODY_BYTES_MAX',
    'has a part for each caller, to the byte, and what is released can be held again': 'BODY_BOUNDS',
    'gives each caller little while much of it is taken, and never more than there is': 'BODY_BOUNDS',
    'is not taken from accounts by strangers, nor all of theirs by one /48 of IPv6': 'BODY_BOUNDS',
  },
  'test/apps/front-door/body-span.test.ts': {
    'may take as long as the limit to arrive, to the last moment, and no longer':
      'JSON_BODY_SPAN_MS FETCH_BODY_SPAN_MS',
    'may be silent for as long as the limit, after which Node ends its connection': 'at:BODY_IDLE_MS',
  },
  'test/apps/front-door/callers.test.ts': {
    'are 2,400,000 of a token and 3,000,000 of its account, and come back at the full minute':
      'TOKEN_POINTS_PER_MINUTE_MAX ACCOUNT_POINTS_PER_MINUTE_MAX',
    'of tokens leave their person 120,000 on the website': 'PERSON_POINTS_PER_MINUTE_MAX',
    'is 50,000 changes, the last thousand of them for its person':
      'ACCOUNT_EVENTS_PER_HOUR_MAX ACCOUNT_EVENTS_KEPT_FOR_PERSON',
    'is a change more for each 4 KiB of a body, so that long events do not fill the log': 'RECORDED_BODY_BYTES',
    'is 250,000 refs created, moved or deleted': 'ACCOUNT_REF_CHANGES_PER_HOUR_MAX',
    'are 512 of an account, and one that leaves makes room for one': 'ACCOUNT_REQUESTS_AT_ONCE_MAX',
    'of other accounts still find room when three accounts have taken all they may':
      'REQUESTS_AT_ONCE_ROOMY_MAX ACCOUNT_REQUESTS_AT_ONCE_TIGHT_MAX',
    'is a change more for each 256 bytes of the name of a ref, which the log keeps': 'REF_CHANGE_NAME_BYTES',
  },
  'test/apps/front-door/form-parts.test.ts': {
    'has heads up to their limit, and not one byte more': 'PART_HEAD_BYTES_MAX',
  },
  'test/apps/front-door/rates.test.ts': {
    'a rate counts as many keys as the limit, and forgets the one that was used longest ago for one more': 'KEYS_MAX',
  },
  'test/apps/front-door/request-turns.test.ts': {
    'An account has a bounded number of requests worked on at the same time, the others in their order, and others do not wait':
      'ACCOUNT_REQUESTS_WORKED_ON_MAX',
  },
  'test/apps/git-http/body.test.ts': {
    'whose client is silent while the server waits for it ends': 'past:BODY_IDLE_MS',
  },
  'test/apps/git-http/held-commands.test.ts': {
    'that does not come is waited for to the last moment of its span': 'COMMAND_LIST_SPAN_MS',
  },
  'test/apps/git-http/push-pace.test.ts': {
    'is enough at the least rate, and cuts a client that sends a byte a second less':
      'PUSH_BYTES_PER_SECOND_MIN PUSH_PACE_SPAN_MS',
    'counts as slow below its rate, and no longer when it is faster again': 'SLOW_PUSH_BYTES_PER_SECOND_MAX',
    'counts a silence whole up to the limit, and no more of a longer one': 'SILENCE_COUNTED_MS_MAX',
  },
  'test/apps/git-http/refused-bytes.test.ts': {
    'are read to the limit after its refusal; with one more, the connection ends with the answer':
      'REFUSED_BODY_DRAIN_BYTES_MAX',
  },
  'test/apps/git-http/slow-pushes.test.ts': {
    'of an account are as many as its limit, wherever they come from': 'SLOW_PUSHES_OF_ACCOUNT_MAX',
    'of a network are as many as its limit, whoever sends them': 'SLOW_PUSHES_OF_NETWORK_MAX',
    'of the networks of a /48 of IPv6 are as many as its limit, and those of neighbours in IPv4 are not counted together':
      'SLOW_PUSHES_OF_WIDE_NETWORK_MAX',
  },
  'test/apps/git-http/unread-answers.test.ts': {
    'have a part of the memory for answers of the API, and short ones beside it': 'UNSENT_BOUNDS',
    'hold an answer from the least length that counts on, and no shorter one': 'COUNTED_BYTES_MIN',
  },
  'test/apps/server/connection-room.test.ts': {
    'of one network are as many as its limit, and one more is refused': 'CONNECTIONS_OF_NETWORK_MAX',
    'of the networks of a /24 are as many as its limit, and one more is refused': 'CONNECTIONS_OF_WIDE_NETWORK_MAX',
    'are few for each network from the limit of a roomy node on, and not one earlier':
      'CONNECTIONS_ROOMY_MAX CONNECTIONS_OF_NETWORK_TIGHT_MAX',
    'are few for the networks of a /24 on a node that is not roomy': 'CONNECTIONS_OF_WIDE_NETWORK_TIGHT_MAX',
    'of a node are as many as its limit; one more is refused, or takes the place of an idle one':
      'apps/server/connection-room.ts#CONNECTIONS_MAX',
  },
  'test/apps/server/connections.test.ts': {
    'is answered a hundred that wait, then told by name, and the connection ends': 'PIPELINED_REQUESTS_MAX',
    'makes as many wait in all as the node lets wait, and loses the connection with one more':
      'PIPELINED_REQUESTS_OF_NODE_MAX',
  },
  'test/apps/server/http.test.ts': {
    'A request head is read below its limit, and refused from there on': 'apps/server/http.ts#HEADER_BYTES_MAX',
    'A handshake of TLS has the time that Node is given for it, and its connection ends after that':
      'TLS_HANDSHAKE_SPAN_MS',
  },
  'test/apps/server/settings.test.ts': {
    'may be any more than the least, and a byte less stops the start': 'PUSH_MEMORY_BYTES_MIN',
  },
  'test/apps/server/slow-readers.test.ts': {
    'is cut below the least speed over the whole span, and not at it': 'READER_BYTES_PER_SECOND_MIN READER_SPAN_MS',
  },
  'test/apps/website/attacks.test.ts': {
    'a place to lead on to that fills headers and the table of sessions': 'NEXT_PATH_LENGTH_MAX',
    'a cookie that grows: a browser is known to the accounts that it signed in to last':
      'apps/website/sessions/known-browser.ts#KNOWN_ACCOUNTS_MAX',
    'large forms, forms of another type, and NUL bytes': 'FORM_BYTES_MAX',
  },
  'test/apps/website/buckets.test.ts': {
    'list errors of repositories in buckets, page by page': 'ERRORS_SHOWN_MAX',
    'name the repositories in a bucket up to the limit, and say that there are more': 'REPOSITORIES_SHOWN_MAX',
  },
  'test/apps/website/device-grant.test.ts': {
    'decides at the last moment of a session, and not one later': 'DEVICE_SESSION_SPAN_MS',
  },
  'test/apps/website/mfa.test.ts': {
    'are accepted for five minutes after the password': 'PENDING_SIGN_IN_SPAN_MS',
    'take a code as people and their keyboards type it, on a keyboard of digits': 'CODE_LENGTH_MAX',
  },
  'test/apps/website/sign-ins.test.ts': {
    'shows names of browsers as text, and as many rows of a day as the limit': 'SIGN_IN_ROWS_MAX AGENT_LENGTH_MAX',
  },
  'test/apps/website/repositories/access.test.ts': {
    'leaves rows of a bounded weight to a page': 'SUBJECTS_BYTES_MAX',
    'names as many addresses of a row as the limit, and counts the others': 'ACCESS_ADDRESSES_MAX',
  },
  'test/apps/website/page-parts.test.ts': {
    'shows its text whole up to the limit, and a part of it with one byte more':
      'apps/website/history/entry.ts#ENTRY_BYTES_MAX',
    'shows as many openings as the limit, each up to its length': 'OPENINGS_SHOWN_MAX OPENING_LENGTH_MAX',
    'are read up to the limit of their length': 'TEXT_LENGTH_MAX',
    'offer as many tokens as the limits of their number and of their bytes': 'TOKENS_OFFERED_MAX TOKENS_BYTES_MAX',
    'leave rows of a bounded weight to a page': 'ROWS_BYTES_MAX',
    'names refs up to the limit, and counts the others': 'REFS_NAMED_MAX',
    'names addresses up to the limit, and counts the others': 'ADDRESSES_NAMED_MAX',
    'shows a body whole up to the limit, and says how much of a longer one it shows':
      'apps/website/webhooks/delivery.ts#SHOWN_LENGTH_MAX',
    'shows as many attempts as the limit, the newest, and counts the others': 'ATTEMPTS_SHOWN_MAX',
    'The page of a webhook shows the attempts of as many pending deliveries as the limit': 'OPEN_MAX',
    'The list of trust rules shows a text whole up to the limit, and cuts a longer one':
      'apps/website/trust/list.ts#SHOWN_LENGTH_MAX',
  },
  'test/apps/website/rendering/renderer.test.ts': {
    'a text at the limit of length is rendered, and one past it is not tried':
      'RENDERED_MARKDOWN_LENGTH_MAX RENDERED_CODE_LENGTH_MAX',
  },
  'test/apps/website/rendering/rendering-pool.test.ts': {
    'lets a person wait with a bounded number of texts, and refuses one more': 'RENDERINGS_OF_PERSON_MAX',
    'lets a bounded number of texts wait in all, and refuses one more': 'RENDERINGS_WAITING_MAX',
    'lets a text wait for as long as it may, renders it to the last moment of its time, and ends it then':
      'RENDERING_SPAN_MS at:RENDERING_WAIT_MS',
    'gives up on a text whose turn does not come in time': 'past:RENDERING_WAIT_MS',
  },
  'test/apps/website/repositories/code-view.test.ts': {
    'are whole up to the elements of a page, and come in windows with one more': 'LONG_PAGE_ELEMENTS_MAX',
    'are whole up to the bytes of a page, and never weigh less than their markup has': 'LONG_PAGE_BYTES_MAX',
    'cuts a line beyond its length, and says so; not one of this length': 'WINDOW_LINE_LENGTH_MAX',
    'of a large file is read up to the last line that it has whole': 'WINDOW_READ_BYTES_MAX',
  },
  'test/apps/website/repositories/diff-view.test.ts': {
    'A diff is read with as many changed lines and files as a page shows': 'PAGE_CHANGED_LINES_MAX PAGE_FILES_MAX',
  },
  'test/apps/website/repositories/editing.test.ts': {
    'is not offered where a browser would change other bytes, and the page says why': 'EDITED_TEXT_BYTES_MAX',
    'takes a form of ${WRITING_FORM_BYTES_MAX} bytes, and no larger one': 'WRITING_FORM_BYTES_MAX',
  },
  'test/apps/website/repositories/heavy-pages.test.ts': {
    'show the start of a name that no address could hold, without a link and without its last commit':
      'LINKED_NAME_BYTES_MAX',
  },
  'test/apps/website/repositories/page-parts.test.ts': {
    'lists as many of each as the limit beside the default branch, and leaves out one more': 'PICKED_MAX',
    'lists them up to the limit of their bytes, and not one byte more': 'PICKED_BYTES_MAX',
    'The links to the folders of a path are all there up to the limit of their bytes, and beyond it the last ones':
      'CRUMBS_BYTES_MAX',
    'The parents of a commit are listed up to the limit, and the others are counted': 'PARENTS_SHOWN_MAX',
    'The commits of a comparison and what a search finds are all listed up to their weight, and fewer at one byte more':
      'COMMITS_BYTES_MAX FOUND_BYTES_MAX',
    'A search is read up to its limit, for repositories and for refs':
      'apps/website/repositories/list.ts#SEARCH_LENGTH_MAX apps/website/repositories/refs-search.ts#SEARCH_LENGTH_MAX',
    'lists changes up to the limit, and counts the others': 'UPDATES_SHOWN_MAX',
    'names what it leaves out up to the limits of the page and of a message, and counts the others':
      'NAMES_SHOWN_MAX NAMES_IN_MESSAGE_MAX',
    'A README is shown from the least room on, and not in less': 'MARKUP_BYTES_MIN',
  },
  'test/apps/website/repositories/pages.test.ts': {
    'page folders and commits: as many as a page takes are on one, and one more begins the next':
      'apps/website/repositories/tree.ts#PAGE_ENTRIES_MAX core/kernel/limits.ts#PAGE_COMMITS_MAX',
  },
  'test/apps/website/repositories/texts.test.ts': {
    'are all of them up to their weight, and half as many at one byte more': 'PAGE_ROWS_BYTES_MAX',
    'is cut, and shows what would hide or reorder it':
      'apps/website/repositories/shown-text.ts#NAME_LENGTH_MAX SUBJECT_LENGTH_MAX',
    'A browser that is not known is named by its header, whole up to the limit': 'UNKNOWN_LENGTH_MAX',
    'The repositories of a token are named up to the limit, and the others are counted': 'NAMES_MAX',
  },
  'test/apps/website/repositories/writing-files.test.ts': {
    'uploads as much as the limit says, and not a byte more': 'UPLOAD_FORM_BYTES_MAX',
  },
  'test/apps/website/sent-parts.test.ts': { 'has at most ${FORM_PARTS_MAX} parts': 'FORM_PARTS_MAX' },
  'test/apps/website/settings.test.ts': {
    'ends a session 30 days after its sign-in, however often it was used': 'SESSION_SPAN_MS',
    'notes at most every ten minutes when a session was used, and ends one that was not used for 14 days':
      'SESSION_IDLE_SPAN_MS',
  },
  'test/apps/website/sign-in.test.ts': {
    'a right password alone leaves a person with a second factor waiting, for five minutes': 'SESSION_KEPT_LENGTH_MAX',
  },
  'test/apps/website/skeleton.test.ts': {
    'cuts the message of a page to its bound': 'FLASH_LENGTH_MAX',
  },
  'test/apps/website/tokens.test.ts': {
    'take a form of the size of all names that a token lists, and no larger one': 'TOKEN_FORM_BYTES_MAX',
    'list tokens with their prefix, and stay small however many there are': 'PAGE_TOKENS_MAX',
    'of the largest number of boxes stay below 60 KB': 'at:BOXES_MAX',
    'take names of repositories where there are too many for boxes': 'past:BOXES_MAX',
  },
  'test/apps/website/trust-rules.test.ts': {
    'try at most 20 tokens a minute': 'TOKEN_TRIALS_PER_MINUTE_MAX',
  },
  'test/apps/website/webhooks.test.ts': {
    'count the health of the newest deliveries only': 'WEBHOOK_HEALTH_DELIVERIES_MAX',
  },
  'test/contract/event-store/limits.ts': {
    'succeeds at one byte less than 1 MiB and is refused at 1 MiB': 'APPEND_SIZE_BYTES_MAX',
    'succeeds with a stream name of the largest size and is refused with a longer one': 'STREAM_NAME_BYTES_MAX',
  },
  'test/contract/passkey-challenges.ts': {
    'are as many as the limit allows for an account: one more replaces the oldest': 'PASSKEY_CHALLENGES_MAX',
  },
  'test/contract/refused-exchanges.ts': {
    'of a rule are as many as the limit allows: the oldest give way': 'REFUSED_EXCHANGES_MAX',
    'are removed with their rule, with their account, and when they are old': 'REFUSED_EXCHANGE_KEPT_MS',
  },
  'test/contract/row-workflows.ts': {
    'carry out each step at its time, and not before': 'DEVICE_SESSION_KEPT_MS',
  },
  'test/contract/session-store.ts': {
    'keeps the newest ${max} sessions of an account that are ${status}': 'SESSIONS_MAX PENDING_SIGN_INS_MAX',
  },
  'test/contract/sign-ins.ts': {
    'name as many sign-ins and tokens as the limits, and count the others':
      'UNSUMMED_SIGN_INS_MAX UNSUMMED_REFUSED_READS_MAX',
  },
  'test/contract/usage-ledger.ts': {
    'say what a token read and wrote in each minute and repository, and from where': 'TOKEN_USE_ADDRESSES_MAX',
  },
  'test/core/git/file-text.test.ts': {
    'is guessed with three letters beyond ASCII in a row, and not with four': 'HIGH_IN_A_ROW_MAX',
    'is guessed with two plain letters for each beyond ASCII, and not with fewer': 'PLAIN_FOR_HIGH_MIN',
  },
  'test/core/access-token/decide.test.ts': {
    'has a name of 1 to 100 characters': 'TOKEN_NAME_LENGTH_MAX',
  },
  'test/core/account/buckets/decide.test.ts': {
    'are as many as the limit, and no more': 'STORAGE_BUCKETS_MAX',
    'have names of one line that are unique without regard to case': 'STORAGE_BUCKET_NAME_LENGTH_MAX',
    'are deleted with their records, but not while repositories depend on them': 'DEPENDENT_NAMES_MAX',
  },
  'test/core/account/buckets/settings.test.ts': {
    'are as long as their limits allow, and no longer':
      'BUCKET_KEY_PREFIX_LENGTH_MAX BUCKET_REGION_LENGTH_MAX BUCKET_ACCESS_KEY_ID_LENGTH_MAX BUCKET_SECRET_KEY_LENGTH_MAX BUCKET_ROLE_ARN_LENGTH_MAX',
  },
  'test/core/account/mfa/decide.test.ts': {
    'are as many as the limit allows, pending ones included, and no more': 'MFA_TOKENS_MAX',
    'have names of at least one character and at most the limit': 'MFA_TOKEN_NAME_LENGTH_MAX',
    'are activated within an hour of their enrolment, or never': 'MFA_ENROLMENT_SPAN_MS',
  },
  'test/core/account/names.test.ts': {
    'has 2 to 39 characters of a-z, 0-9 and single inner hyphens': 'USERNAME_LENGTH_MIN USERNAME_LENGTH_MAX',
    'has 1 to 100 letters, digits, dots, hyphens and underscores': 'REPOSITORY_NAME_LENGTH_MAX',
    'has text on both sides of one @, no blanks, and at most 254 characters': 'EMAIL_LENGTH_MAX',
  },
  'test/core/account/plans.test.ts': {
    'What purges took out may be a number of times the storage of the plan, and at least as much as the least':
      'WAITING_STORAGE_FACTOR',
  },
  'test/core/account/repositories/decide.test.ts': {
    'have descriptions of up to 1,000 code points': 'REPOSITORY_DESCRIPTION_LENGTH_MAX',
  },
  'test/core/account/repositories/evolve.test.ts': {
    'keeps the newest ${REPOSITORY_FORMER_NAMES_MAX} old names of a repository, the newest first':
      'REPOSITORY_FORMER_NAMES_MAX',
    'keeps what led to the newest ${DELETED_FORMER_NAMES_MAX} deleted repositories': 'DELETED_FORMER_NAMES_MAX',
  },
  'test/core/account/trust-rules/conditions.test.ts': {
    'are taken at their limits, and refused one past them':
      'TRUST_RULE_CLAIMS_MAX TRUST_RULE_CLAIM_NAME_LENGTH_MAX TRUST_RULE_PATTERN_LENGTH_MAX TRUST_RULE_WILDCARDS_MAX',
  },
  'test/core/account/webhooks/decide.test.ts': {
    'can be as many as the limit allows, and no more': 'WEBHOOKS_MAX',
  },
  'test/core/audit/account-state.test.ts': {
    'keeps the refs of its repositories up to the limit, and of the others knows the revision': 'ACCOUNT_FOLD_REFS_MAX',
  },
  'test/core/bucket-errors/decide.test.ts': {
    'is recorded once in an interval for the same repository, operation and code': 'BUCKET_ERROR_INTERVAL_MS',
    'is recorded no more when the bucket has as many on one day as the limit': 'BUCKET_ERRORS_OF_DAY_MAX',
  },
  'test/core/git/blame.test.ts': {
    'keeps as many lines as the limit, and says that there is one more': 'BLAME_LINES_MAX',
    'keeps paths up to the limit of their bytes, each once, and ends at one more': 'BLAME_PATHS_BYTES_MAX',
  },
  'test/core/git/commit-time.test.ts': {
    'The time of a commit is that of its seconds, and outside 1970 to 9999 the nearest time in that span':
      'SECONDS_MAX',
  },
  'test/core/git/diff/diff-parser.test.ts': {
    'lists as many files as the limit, counts one more, and does not list it': 'DIFF_FILES_MAX',
    'shows as many lines of a file as the limit, and counts one more': 'DIFF_FILE_LINES_MAX',
    'cuts a line at the limit of its bytes': 'DIFF_LINE_BYTES_MAX',
    'shows lines up to the limit of all their bytes, and counts the rest': 'DIFF_KEPT_BYTES_MAX',
    'stops reading beyond the limit of bytes, and says that it counted no further': 'DIFF_READ_BYTES_MAX',
    'takes a path as long as the limit, and stops at a longer one': 'DIFF_PATH_BYTES_MAX',
    'lists files up to the limit of the bytes of their paths, counts the others, and lists none of them':
      'DIFF_PATHS_BYTES_MAX',
  },
  'test/core/git/ref-name.test.ts': {
    'may have 250 bytes in a component and 4,096 in all, and not one more':
      'REF_NAME_BYTES_MAX REF_COMPONENT_BYTES_MAX',
  },
  'test/apps/api/write-commit.test.ts': {
    'A commit reads ${CHANGED_TREES_READ_BYTES_MAX / MIB} MiB of trees, and no more': 'CHANGED_TREES_READ_BYTES_MAX',
    'A commit reads ${CHANGED_ENTRIES_READ_MAX} entries of trees, and no more': 'CHANGED_ENTRIES_READ_MAX',
  },
  'test/scenarios/blame.test.ts': {
    'comes in pages of at most a number of ranges, which run on without a gap': 'BLAME_RANGES_MAX',
  },
  'test/scenarios/write-commits.test.ts': {
    'has a message, authors and changes up to their limits, and not one more':
      'COMMIT_CHANGES_MAX NEW_MESSAGE_BYTES_MAX AUTHOR_TEXT_LENGTH_MAX',
  },
  'test/core/git/tree-changes.test.ts': {
    'have up to ${CHANGED_NAMES_MAX} names on their paths, and as large trees as may be read': 'CHANGED_NAMES_MAX',
  },
  'test/core/git/wire/command-list.test.ts': {
    'one past each limit, and accepted at it':
      'PUSH_COMMANDS_MAX PUSH_COMMANDS_BYTES_MAX PUSH_OPTIONS_MAX PUSH_OPTIONS_BYTES_MAX SHALLOW_LINES_MAX',
  },
  'test/core/git/wire/ls-refs.test.ts': {
    'returns every ref from a number or length of prefixes on, and only those that match with fewer':
      'LS_REFS_PREFIXES_MAX LS_REFS_PREFIXES_LENGTH_MAX',
  },
  'test/core/git/wire/pkt-line.test.ts': {
    'hold 65,516 bytes and not one more': 'PACKET_PAYLOAD_BYTES_MAX',
  },
  'test/core/git/wire/report-status.test.ts': {
    'has a reason whole up to the limit, and cuts a longer one': 'REASON_LENGTH_MAX',
  },
  'test/core/git/wire/upload-pack-request.test.ts': {
    'reaches a limit is accepted, and one past it refused':
      'FETCH_REQUEST_BYTES_MAX FETCH_DEEPEN_NOT_MAX SERVER_OPTIONS_MAX SERVER_OPTION_BYTES_MAX',
    'holds more wants, haves, prefixes or capabilities than git sends is refused by name':
      'FETCH_WANTS_MAX FETCH_HAVES_MAX REQUEST_CAPABILITIES_MAX LS_REFS_PREFIX_LINES_MAX',
    "filters by ${filter} is ${taken ? 'accepted' : 'refused'}": 'FETCH_TREE_DEPTH_MAX',
  },
  'test/core/repository/compaction.test.ts': {
    'are merged immediately when they are many, later when they are some, and never when they are few':
      'LAYERS_MAX LAYERS_AT_REST_MAX',
  },
  'test/core/repository/decide-refs.test.ts': {
    'are refused by name, and those that fit are made': 'REPOSITORY_REFS_MEMORY_BYTES_MAX',
  },
  'test/core/repository/evolve.test.ts': {
    'are kept for a minute, to its last millisecond': 'LEFT_TIP_SPAN_MS',
    'are bounded in number, and the newest are kept': 'LEFT_TIPS_MAX',
  },
  'test/core/repository/unreached.test.ts': {
    'unless the layers are too large or too many for one compaction': 'DROPPING_BYTES_MAX LAYERS_REMOVED_AT_ONCE_MAX',
  },
  'test/core/runtime/execute.test.ts': {
    'is the last of as many in a row as the limit; with one fewer, the decision is appended':
      'core/runtime/execute.ts#RACES_MAX',
  },
  'test/core/usage/changes.test.ts': {
    'Tokens leave the last 1,000 of a quota to the person, and all of a smaller one':
      'CHANGES_KEPT_FOR_PERSON CHANGES_BEYOND_QUOTA_FOR_REF_DELETIONS',
  },
  'test/core/usage/meter.test.ts': {
    'are fifty in a minute at most, and named a thousand times': 'TRANSFER_ADDRESSES_MAX TRANSFER_ADDRESS_REFS_MAX',
    'names at most a thousand pairs, and counts the bytes of all': 'READERS_MAX',
    'has the refused reads of its tokens by their reason, and names as many tokens as the limit':
      'TRANSFER_REFUSED_READS_MAX',
  },
  'test/core/use-cases/accounts/accounts.test.ts': {
    'needs a valid username, address and password, or nothing is written': 'PASSWORD_LENGTH_MIN PASSWORD_LENGTH_MAX',
    'keeps its names for their whole time': 'CLAIM_SPAN_MS',
  },
  'test/core/use-cases/accounts/account-settings.test.ts': {
    'is erased when its time is over, not before, and then lets nobody in': 'ACCOUNT_CLOSED_SPAN_MS',
  },
  'test/core/use-cases/buckets/layer-stores.test.ts': {
    'has a bounded number of calls; further ones fail immediately, and other places answer': 'BUCKET_CALLS_MAX',
    'is tried by a few calls while it does not answer; the others fail with them, and all go on after an answer':
      'BUCKET_TRIALS_MAX',
  },
  'test/core/use-cases/issuing/signing-keys.test.ts': {
    'is refused while as many sets are public as the limit allows, unless it revokes them': 'SIGNING_KEY_SETS_MAX',
  },
  'test/core/use-cases/log-files/log-file.test.ts': {
    'may have a line of the greatest length, and not one byte more': 'LOG_FILE_LINE_BYTES_MAX',
  },
  'test/core/use-cases/manifests/rebuild-repository.test.ts': {
    'is read up to its limit and no further': 'MANIFEST_BYTES_MAX',
  },
  'test/core/use-cases/metering/record-usage.test.ts': {
    'name this many readers and no more, whose bytes count all the same': 'USAGE_READERS_MAX',
    'name this many sign-ins and refused tokens and no more, and count the rest':
      'USAGE_SIGN_INS_MAX USAGE_REFUSED_READS_MAX',
  },
  'test/core/use-cases/pushing/push-refs-limits.test.ts': {
    "limit the pack to the smaller remainder, and a larger pack is refused with that quota's code":
      'at:PACK_OBJECTS_MAX',
    "leave the product's own limit in force if they allow more, and a refusal names that limit":
      'at:PACK_SIZE_BYTES_MAX',
  },
  'test/core/use-cases/pushing/push-refs.test.ts': {
    'chooses the default branch among the first ${DATED_BRANCHES_MAX} branches by their dates': 'DATED_BRANCHES_MAX',
    'is refused if its layer was stored too long ago, and accepted at the last moment': 'PUSH_COMMIT_SPAN_MS',
  },
  'test/core/git/file-list.test.ts': {
    'ends beyond its bounds of paths and bytes, and of the bytes of one path':
      'FILE_LIST_PATHS_MAX FILE_LIST_BYTES_MAX FILE_LIST_PATH_BYTES_MAX',
  },
  'test/core/git/grep-lines.test.ts': {
    'keeps of a long line what is around the match, and whole characters': 'GREP_LINE_BYTES_MAX',
  },
  'test/core/use-cases/reading/find-files.test.ts': {
    'are refused where a tree has too many, and where git takes too long': 'at:FILE_LISTING_SPAN_MS',
  },
  'test/core/use-cases/reading/search-code.test.ts': {
    'ends after ${SEARCH_MATCHES_MAX} matches, and says so': 'SEARCH_MATCHES_MAX',
    'that git ends at a bound shows what it found by then, and is not kept': 'at:SEARCH_SPAN_MS',
    'goes on without files that git cannot hold, and is complete if these are binary': 'past:SEARCH_MEMORY_BYTES_MAX',
  },
  'test/scenarios/search.test.ts': {
    'finds commits by author, text and time, as git log does': 'COMMIT_SEARCH_LENGTH_MAX',
  },
  'test/apps/api/search.test.ts': {
    'a search takes a text of ${SEARCH_TEXT_LENGTH_MAX} characters, and none that is longer, empty, missing or with NUL':
      'SEARCH_TEXT_LENGTH_MAX',
  },
  'test/core/use-cases/reading/blame-file.test.ts': {
    'says that it is not whole when the time is up, and is looked for again': 'BLAME_SPAN_MS',
    'comes in pages, whose paths have at most a number of bytes': 'PAGE_PATHS_BYTES_MAX',
  },
  'test/core/use-cases/reading/list-tree.test.ts': {
    'says that a commit is not known when the time is up, and does not walk again for it': 'LAST_COMMITS_SPAN_MS',
  },
  'test/core/use-cases/reading/path-history.test.ts': {
    'say that older ones may be missing when the time is up, or there are more than the limit':
      'PATH_HISTORY_COMMITS_MAX PATH_HISTORY_SPAN_MS',
    'go on under as many earlier names as the limit, and say that there may be more under another one':
      'PATH_RENAMES_MAX',
  },
  'test/core/use-cases/reading/list-commits.test.ts': {
    'shows texts up to their limits, and cuts longer ones as the model does':
      'COMMIT_LISTED_MESSAGE_LENGTH_MAX COMMIT_LISTED_NAME_LENGTH_MAX',
    'cuts long messages further on a page that would be too large, as the model does, and marks them':
      'COMMITS_PAGE_BYTES_MAX COMMIT_CROWDED_MESSAGE_LENGTH_MAX',
  },
  'test/core/use-cases/reading/open-fetch.test.ts': {
    'is not made for a repository that is larger than the answers that are kept': 'ANSWER_KEPT_BYTES_MAX',
  },
  'test/core/use-cases/reading/pushes-of-commits.test.ts': {
    'is not known beyond the limits of commits, changes and time, and costs no further walk': 'PUSHED_SPAN_MS',
    'is known of as many commits as the limit, and not of one more': 'PUSHED_COMMITS_MAX',
    'is looked for while refs changed as often as the limit, and not with one change more': 'PUSHED_TIPS_MAX',
  },
  'test/core/use-cases/reading/read-commit.test.ts': {
    'shows its files although the time for its lines is up': 'DIFF_SPAN_MS',
  },
  'test/core/use-cases/reading/read-contents.test.ts': {
    'of 64 MiB are returned, and of one byte more refused, in both forms': 'CONTENTS_FILE_BYTES_MAX',
    'whose names and paths take too much on one page is refused, and shown on smaller ones': 'CONTENTS_NAMES_BYTES_MAX',
    'of a link are its own text, cut to the longest target a link can have': 'SYMLINK_TARGET_BYTES_MAX',
  },
  'test/core/use-cases/reading/ref-path.test.ts': {
    'are found up to a bounded number of components of a ref, and a hostile address costs little':
      'REF_ADDRESS_COMPONENTS_MAX',
  },
  'test/core/use-cases/reading/refs-and-comparison.test.ts': {
    'is by name beyond ${BRANCHES_BY_CHANGE_MAX} branches': 'BRANCHES_BY_CHANGE_MAX',
    'is by name where the dates take too long to read, and what was read is kept': 'BRANCH_DATES_SPAN_MS',
    'leaves out a count that takes too long': 'APART_SPAN_MS',
    'says what was not found in time': 'COMPARISON_SPAN_MS',
  },
  'test/core/use-cases/reading/resolve-ref.test.ts': {
    'is the commit that a short id names, after branches and tags, if a ref reaches it and no other':
      'SHORT_ID_DIGITS_MIN',
    'is refused where several commits begin alike, which are named up to the limit':
      'SHORT_ID_COMMITS_NAMED_MAX SHORT_ID_OBJECTS_MAX',
    'is refused with branches up to the limit where the default branch is not there, and the others are counted':
      'BRANCHES_NAMED_MAX',
  },
  'test/core/use-cases/reading/tree-page.test.ts': {
    'ends after ${TREE_ENTRIES_MAX} entries, also where few objects hold any number of them': 'TREE_ENTRIES_MAX',
    'reads no more entries than its bound, whatever stands beside the folders': 'TREE_ENTRIES_READ_MAX',
    'reads no more than ${TREE_BYTES_READ_MAX / MIB} MiB of trees': 'TREE_BYTES_READ_MAX',
    'goes as deep as paths of ${TREE_PATH_BYTES_MAX} bytes, and no deeper': 'TREE_PATH_BYTES_MAX',
  },
  'test/core/use-cases/signing-in/passkeys.test.ts': {
    'is answered within the time of its challenge, and not after it': 'PASSKEY_CHALLENGE_SPAN_MS',
  },
  'test/core/use-cases/signing-in/sign-in.test.ts': {
    'has ten failures in fifteen minutes from one network, on whichever node':
      'SIGN_IN_FAILURES_PAIR_MAX SIGN_IN_FAILURES_SPAN_MS',
    'has a hundred failures against one account from many networks': 'SIGN_IN_FAILURES_LOGIN_MAX',
    'has a hundred failures from one network against many accounts, whatever its addresses':
      'SIGN_IN_FAILURES_NETWORK_MAX',
    'has five hundred failures from all networks of a /48': 'SIGN_IN_FAILURES_WIDE_MAX',
    'cannot lock the owner out of a browser that has signed in before, nor use its count':
      'SIGN_IN_FAILURES_BROWSER_MAX',
    'has the start of a very long user agent kept, and none kept that the request does not name':
      'USER_AGENT_LENGTH_MAX',
  },
  'test/core/use-cases/signing-in/sign-up.test.ts': {
    'has twenty tries in an hour from one network, whether they succeed or not': 'SIGN_UPS_PER_HOUR_MAX',
    'has a hundred tries in an hour from all networks of a /48 of IPv6': 'SIGN_UPS_PER_HOUR_WIDE_MAX',
  },
  'test/core/use-cases/sweeping/expire-layers.test.ts': {
    'stay an hour without any retention, since requests under way may read them': 'REPLACED_LAYERS_KEPT_MS_MIN',
  },
  'test/core/use-cases/tokens/list-access-tokens.test.ts': {
    'list 100,000 repositories in sum at most, since one answer lists them all': 'TOKENS_REPOSITORIES_MAX',
  },
  'test/core/use-cases/undo/purge-repository.test.ts': {
    'is refused within an hour of the last one that rewrote the repository, with the time to wait':
      'PURGE_REWRITING_INTERVAL_MS',
    'is not refused while what purges took out is no more than the quota': 'at:WAITING_STORAGE_BYTES_MIN',
    'is refused while what purges took out is beyond the quota, however much the service did':
      'past:WAITING_STORAGE_BYTES_MIN',
    'waits for the webhooks of the last push, and is refused in words if they stay behind':
      'PURGE_NOTIFICATION_WAIT_MS',
  },
  'test/core/use-cases/webhooks/accounts-over-budget.test.ts': {
    'An account is full when as many deliveries wait as the limit, and not one earlier; a row counts as the least':
      'WEBHOOK_WAITING_DELIVERIES_MAX WEBHOOK_ROW_LEAST',
  },
  'test/core/use-cases/webhooks/delivery-budget.test.ts': {
    'A first attempt counts once more from each full length of its payload on, and not a byte earlier':
      'WEBHOOK_BUDGET_PAYLOAD_BYTES',
  },
  'test/core/use-cases/webhooks/follow-pushes.test.ts': {
    'of at most a thousand refs, each with its own commits only': 'WEBHOOK_PUSH_REFS_MAX',
    'after an outage, and without commits if the objects stay unavailable':
      'core/use-cases/webhooks/follow-pushes.ts#TRIES_MAX',
  },
  'test/core/use-cases/webhooks/limit-stored-bodies.test.ts': {
    'of a free account take at most 64 MiB of answers after thirty days of full ones, and the newest stay':
      'WEBHOOK_ANSWERS_BYTES_MAX',
    'take at most 1 GiB of payloads; those of deliveries that have not ended, or may be requested yet, stay':
      'WEBHOOK_PAYLOADS_BYTES_MAX',
    'of an account without a quota of storage are left at the limit, and the oldest are looked for one byte past it':
      'WEBHOOK_BODIES_UNLIMITED_BYTES_MAX',
  },
  'test/core/use-cases/webhooks/new-commits-of-push.test.ts': {
    'are held up to their number, and of one more the newest of each ref are read': 'WEBHOOK_PUSH_COMMITS_HELD_MAX',
    'are held up to the length of their texts and parents, and not one character more':
      'WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX',
  },
  'test/core/use-cases/webhooks/notify-webhooks.test.ts': {
    'have their whole size while all of them fit together, and equal shares with one more':
      'WEBHOOK_PUSH_PAYLOADS_BYTES_MAX',
  },
  'test/core/use-cases/webhooks/pending-delivery-limit.test.ts': {
    'may be as many as the limit, and not one more, as the read model or the room itself counts':
      'WEBHOOK_PENDING_DELIVERIES_MAX',
    'let pushes be expanded again when as many are left as the second limit, and not one earlier':
      'WEBHOOK_PENDING_DELIVERIES_RESUMED',
  },
  'test/core/webhook-delivery/decide.test.ts': {
    'waits 8, 16, … 512 seconds from the end of each attempt, and fails with the eighth attempt':
      'WEBHOOK_ATTEMPTS_MAX WEBHOOK_RETRY_WAITS_MS',
    'can be redelivered as often as the limit allows, and no more': 'WEBHOOK_SERIES_MAX',
    'belongs to the process that claimed it, until the claim lapses': 'WEBHOOK_CLAIM_SPAN_MS',
  },
  'test/core/webhook-delivery/payload.test.ts': {
    'lists new commits oldest first, and only the newest of very many': 'WEBHOOK_PAYLOAD_COMMITS_MAX',
    'holds commits, tags and people at bounded length':
      'WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX WEBHOOK_PAYLOAD_NAME_LENGTH_MAX WEBHOOK_PAYLOAD_PARENTS_MAX',
    'has as many bytes as the limit, and has a text cut with one more': 'WEBHOOK_PAYLOAD_BYTES_MAX',
    'has texts cut to the least length, and commits left out before any text is cut further': 'TEXT_LENGTH_MIN',
  },
  'test/projections/bounded-lists.test.ts': {
    'are listed up to their number, the newest, and those of other buckets beside them':
      'BUCKET_ERRORS_LISTED_MAX BUCKET_ERROR_LISTED_MS',
  },
  'test/projections/history/bounds.test.ts': {
    'a list of branches has a bounded size, however long the messages of its commits are': 'BRANCHES_COMMITS_BYTES_MAX',
  },
  'test/projections/history/work-bounds.test.ts': {
    'puts as many commits in order as the limit, and not one more': 'HISTORY_ORDERED_COMMITS_MAX',
    'may take as long as the limit, to the last moment, and no longer': 'HISTORY_SPAN_MS',
  },
  'test/security/device-logins.test.ts': {
    'of one network push out only their own': 'DEVICE_SESSIONS_PENDING_MAX',
  },
  'test/security/failed-tokens.test.ts': {
    'is told after sixty in a minute to wait, and costs no read of the log from then on':
      'FAILED_TOKENS_PER_MINUTE_MAX',
    'counts a /64 of IPv6 as one, and three hundred failures in a /48': 'FAILED_TOKENS_PER_MINUTE_WIDE_MAX',
    'lets failures from ever new addresses cost no reads of the log either, but makes none of them wait':
      'FAILED_TOKENS_PER_MINUTE_NODE_MAX',
    'looks up what arrives in between with one query, of a thousand at most': 'TOKENS_LOOKED_UP_MAX',
  },
  'test/security/oidc-exchange.test.ts': {
    'bounds the size and the depth of a token before it reads it': 'IDENTITY_TOKEN_DEPTH_MAX IDENTITY_TOKEN_LENGTH_MAX',
    'is tried at most 20 times a minute from an address': 'EXCHANGES_PER_MINUTE_MAX',
    'reads no more of an issuer than the limits': 'ISSUER_DOCUMENT_BYTES_MAX ISSUER_KEYS_MAX',
    'gives a token of 15 minutes with the permissions of the rule, and no other': 'EXCHANGED_TOKEN_SPAN_MS',
    'takes a token only in its time, give or take 60 seconds': 'IDENTITY_TOKEN_SPAN_MS IDENTITY_TOKEN_SKEW_MS',
    'refuses a token whose id is empty, very long or no text': 'IDENTITY_TOKEN_ID_LENGTH_MAX',
    'shows the owner a claim of the greatest length whole, and cuts a longer one': 'REFUSED_EXCHANGE_TEXT_LENGTH_MAX',
  },
  'test/workflows/webhook-delivery/dispatcher.test.ts': {
    'signs with the previous secret too until its time is over, and not from then on': 'WEBHOOK_SECRET_OVERLAP_MS',
  },
  'test/workflows/webhook-delivery/receivers.test.ts': {
    "${kind.what} ${kind.error === null ? 'is the only one' : `fails with ${kind.error}`}":
      'WEBHOOK_ATTEMPT_SPAN_MS WEBHOOK_ANSWER_BYTES_MAX',
  },
};
