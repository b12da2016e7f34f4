/** The beginning of the names of all packs of a commit in the archive. */
export const packsOf = (commit: string): string => `commits/${commit.slice(0, 2)}/${commit}.`
/** A commit and its tree, without what came before it. */
export const basePack = (commit: string): string => `${packsOf(commit)}base.pack`
/** What a commit adds to one of its ancestors. */
export const packOnto = (commit: string, onto: string): string => `${packsOf(commit)}${onto}.pack`
