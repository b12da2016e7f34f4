import type { RepositoryGit } from './repository-git.ts'

/** What a state names, by type. */
export interface NamedObjects {
  readonly commits: readonly string[]
  /** Annotated tags with their content; one that a tag names comes before it. */
  readonly tags: ReadonlyMap<string, Buffer>
  /** Trees and blobs, with their mode in a tree. */
  readonly others: ReadonlyMap<string, '040000' | '100644'>
}

/** Finds out what these ids are, and what the tags among them stand for. What is no object of this repository is left out. */
export async function namedObjects(git: RepositoryGit, ids: Iterable<string>): Promise<NamedObjects> {
  const commits: string[] = []
  const tags = new Map<string, Buffer>()
  const others = new Map<string, '040000' | '100644'>()
  const seen = new Set<string>()
  for (let next = [...new Set(ids)]; next.length > 0;) {
    for (const id of next) seen.add(id)
    const input = Buffer.from(next.map((id) => `${id}\n`).join(''))
    const answers = (await git.writing(['cat-file', '--batch-check'], { input })).toString().split('\n')
    next = []
    for (const answer of answers) {
      const [id = '', type] = answer.split(' ')
      if (type === 'commit') commits.push(id)
      else if (type === 'tree') others.set(id, '040000')
      else if (type === 'blob') others.set(id, '100644')
      else if (type === 'tag') {
        const content = await git.reading(['cat-file', 'tag', id])
        tags.set(id, content)
        const [, target] = /^object ([0-9a-f]+)\n/.exec(content.toString('latin1')) ?? []
        if (target !== undefined && !seen.has(target)) next.push(target)
      }
    }
  }
  return { commits: [...new Set(commits)].sort(), tags: new Map([...tags].reverse()), others }
}
