/** Where people arrive after they signed in. */

/** Returns the path of a person's list of repositories. */
export function homeOf(username: string): string {
  return `/${username}`;
}
