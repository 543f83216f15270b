/** Who a commit is by that names nobody. No address of a person enters a commit that they did not write. */
export function serviceAuthor(username: string, host: string): { readonly name: string; readonly email: string } {
  return { name: username, email: `${username}@users.noreply.${host}` };
}
