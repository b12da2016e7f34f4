/**
 * What of the agent's own repository outlives its sandbox, beside the objects: kept as `state.json` in a commit whose parents are the
 * commits that it names, so that one pack brings all of it. In that commit's tree, `index` is the index as a tree, `objects/<id>` what
 * is named and is no commit, and `tags/<id>` an annotated tag as a blob.
 *
 * Paths, names and messages are path keys. Not kept: reflogs (but for the stash), times, and objects that nothing names.
 */
export interface GitState {
  /** A full ref name, which may have no commit yet; or a commit. */
  readonly head: { readonly ref: string } | { readonly commit: string }
  readonly refs: readonly (readonly [name: string, id: string])[]
  readonly symbolicRefs: readonly (readonly [name: string, target: string])[]
  /** Newest first. */
  readonly stash: readonly (readonly [id: string, message: string])[]
  /** Ids of annotated tags, innermost first. */
  readonly tags: readonly string[]
  /** Absent when the agent's index could not be read. */
  readonly index?: IndexState
  readonly files: readonly KeptFile[]
  /** Those of the base commit that are checked out, by path key, with the commit that they are at, and what of the base commit's is not in them. */
  readonly submodules: readonly {
    readonly path: string
    readonly commit: string
    readonly gone?: readonly string[]
  }[]
}

/** An index: its tree, and what no tree has. */
export interface IndexState {
  /** Absent when nothing is in it. */
  readonly tree?: string
  /** As `git update-index --index-info` takes them. */
  readonly unmerged: readonly string[]
  /** Each with the mode that it has in the index; a path alone in states of before. */
  readonly intentToAdd: readonly (string | readonly [mode: string, path: string])[]
  readonly assumeUnchanged: readonly string[]
  readonly skipWorktree: readonly string[]
}

/** A small file below `.git`: configuration, hooks, or where a merge or a rebase stands. */
export interface KeptFile {
  readonly path: string
  readonly mode: '100644' | '100755'
  readonly base64: string
}

export const stateFile = 'state.json'
export const indexFolder = 'index'
export const objectsFolder = 'objects'
export const tagsFolder = 'tags'
