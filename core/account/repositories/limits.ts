/** The limits of an account's list of repositories. */

/** The newest of a repository's earlier names, which lead on to it. */
export const REPOSITORY_FORMER_NAMES_MAX = 20;

/** The newest deletions of repositories that had earlier names: an undeletion lets these lead on again. */
export const DELETED_FORMER_NAMES_MAX = 20;
