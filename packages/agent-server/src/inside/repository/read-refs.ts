import { pathKey } from '@tutti/workspace'
import type { GitState } from './git-state.ts'
import type { RepositoryGit } from './repository-git.ts'

const stashRef = 'refs/stash'
const format = '%(refname)%00%(objectname)%00%(symref)'

/** HEAD, refs and stash of the agent's repository. */
export async function readRefs(
  git: RepositoryGit,
): Promise<Pick<GitState, 'head' | 'refs' | 'symbolicRefs' | 'stash'>> {
  const refs: [string, string][] = []
  const symbolicRefs: [string, string][] = []
  let hasStash = false
  const listing = pathKey(await git.reading(['for-each-ref', `--format=${format}`]))
  for (const line of listing.split('\n')) {
    const [name = '', id = '', target = ''] = line.split('\0')
    if (name === stashRef) hasStash = true
    else if (target !== '') symbolicRefs.push([name, target])
    else if (name !== '') refs.push([name, id])
  }
  const ref = pathKey(await git.reading(['symbolic-ref', '-q', 'HEAD'], { accept: [0, 1] })).trim()
  const head = ref === '' ? { commit: await commitOf(git, 'HEAD') } : { ref }
  return { head, refs, symbolicRefs, stash: hasStash ? await readStash(git) : [] }
}

const commitOf = async (git: RepositoryGit, revision: string): Promise<string> =>
  (await git.reading(['rev-parse', '--verify', `${revision}^{commit}`])).toString().trim()

/** A stash is a ref and the log of what it was before. */
async function readStash(git: RepositoryGit): Promise<[string, string][]> {
  const lines = await git.reading(['log', '-g', '-z', '--format=%H %gs', stashRef, '--'])
  return pathKey(lines)
    .split('\0')
    .filter(Boolean)
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)])
}
