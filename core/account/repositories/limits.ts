/** The limits of an account's list of repositories. */

/** The newest of a repository's earlier names, which lead on to it. */
export const REPOSITORY_FORMER_NAMES_MAX = 20;
