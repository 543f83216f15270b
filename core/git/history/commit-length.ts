/** How much of a commit is held by whoever holds it, for bounds of memory: its texts may be as large as an object. */
interface Person {
  readonly name: string;
  readonly email: string;
}

interface CommitTexts {
  readonly message: string;
  readonly author: Person;
  readonly committer: Person;
  readonly parents: readonly string[];
}

const PARENT_LENGTH = 64;

/** Of its texts, in UTF-16 code units, a parent as 64 of them. */
export function commitLength({ message, author, committer, parents }: CommitTexts): number {
  const people = author.name.length + author.email.length + committer.name.length + committer.email.length;
  return message.length + people + PARENT_LENGTH * parents.length;
}
