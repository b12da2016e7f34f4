import createIgnore, { type Ignore } from 'ignore'
import { pathBytes } from '@tutti/workspace'

/** What the `.gitignore` files of a folder match. Whether git tracks it all the same is not asked: there need be no git. */
export interface IgnoredByRules {
  matches(key: string): boolean
  /** Whether a walk need not enter a folder: all of it is ignored, and nothing of it is known. */
  prunes(key: string, isKnown: (key: string) => boolean): boolean
}

/**
 * @param read the text of a rule file; throws where there is none.
 * @param ignoreCase as git has it in `core.ignorecase`: what the folder's disk does
 */
export function createIgnoredByRules(read: (key: string) => string, ignoreCase: boolean): IgnoredByRules {
  const rulesOf = new Map<string, Ignore | undefined>()
  const found = new Map<string, boolean>()

  function rules(folder: string): Ignore | undefined {
    if (!rulesOf.has(folder)) rulesOf.set(folder, load(folder))
    return rulesOf.get(folder)
  }

  function load(folder: string): Ignore | undefined {
    try {
      const text = read(folder === '' ? '.gitignore' : `${folder}/.gitignore`)
      return createIgnore({ ignoreCase }).add(text)
    } catch {
      return undefined
    }
  }

  /** Of rules that match, those of the deepest folder count. */
  function isMatched(key: string, isFolder: boolean): boolean {
    let matched = false
    for (const slash of [-1, ...slashesOf(key)]) {
      const own = rules(key.slice(0, Math.max(0, slash)))
      if (!own) continue
      const below = pathBytes(key.slice(slash + 1)).toString() + (isFolder ? '/' : '')
      const { ignored, unignored } = own.test(below)
      matched = ignored || (matched && !unignored)
    }
    return matched
  }

  function isFolderIgnored(key: string): boolean {
    if (key === '') return false
    const known = found.get(key)
    if (known !== undefined) return known
    const ignored = isFolderIgnored(folderOf(key)) || isMatched(key, true)
    found.set(key, ignored)
    return ignored
  }

  return {
    matches: (key) => isFolderIgnored(folderOf(key)) || isMatched(key, false),
    prunes: (key, isKnown) => isFolderIgnored(key) && !isKnown(key),
  }
}

const folderOf = (key: string): string => key.slice(0, Math.max(0, key.lastIndexOf('/')))

function* slashesOf(key: string): Generator<number> {
  for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) yield slash
}
