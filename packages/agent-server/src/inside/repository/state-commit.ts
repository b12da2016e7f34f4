import { indexFolder, objectsFolder, stateFile, tagsFolder, type GitState } from './git-state.ts'
import type { NamedObjects } from './named-objects.ts'
import type { RepositoryGit } from './repository-git.ts'

/** Fixed, so that the same state is the same commit. */
const author = 'Tutti <tutti@localhost> 0 +0000'
const passing = 'refs/tutti/state'

/** Makes the commit that holds a state, in the scratch folder; returns its id. One process, and no ref is left. */
export async function makeStateCommit(
  git: RepositoryGit,
  state: GitState,
  named: NamedObjects,
): Promise<string> {
  const parts: Buffer[] = []
  const line = (text: string) => parts.push(Buffer.from(`${text}\n`))
  const data = (bytes: Buffer) => {
    line(`data ${bytes.length}`)
    parts.push(bytes, Buffer.from('\n'))
  }
  line(`commit ${passing}\nmark :1\nauthor ${author}\ncommitter ${author}`)
  data(Buffer.from('State of an agent’s repository\n'))
  for (const [at, commit] of named.commits.entries()) line(`${at === 0 ? 'from' : 'merge'} ${commit}`)
  line('deleteall')
  line(`M 100644 inline ${stateFile}`)
  data(Buffer.from(JSON.stringify(state)))
  for (const [id, content] of named.tags) {
    line(`M 100644 inline ${tagsFolder}/${id}`)
    data(content)
  }
  for (const [id, mode] of named.others) line(`M ${mode} ${id} ${objectsFolder}/${id}`)
  if (state.index?.tree) line(`M 040000 ${state.index.tree} ${indexFolder}`)
  const zero = '0'.repeat(state.index?.tree?.length ?? named.commits[0]?.length ?? 40)
  line(`get-mark :1\nreset ${passing}\nfrom ${zero}\n\ndone`)
  const arguments_ = ['fast-import', '--quiet', '--force', '--done', '--date-format=raw']
  return (await git.writing(arguments_, { input: Buffer.concat(parts) })).toString().trim()
}
