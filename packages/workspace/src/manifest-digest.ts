import { createHash } from 'node:crypto'
import type { EmptyFolderState, FileState, PathState } from './file-state.ts'
import { pathKey } from './path-key.ts'

/**
 * Hash over the sorted (path, type, mode, content hash) of a whole workspace: 64 hex digits of sha256. Two workspaces with
 * the same digest are the same byte for byte in all that a workspace keeps (not owner or times).
 */
export const manifestDigest = (states: Iterable<PathState>): string =>
  manifestDigestByKey(new Map([...states].map((state) => [pathKey(state.path), state])))

type DigestedState = Pick<FileState, 'fileType' | 'mode' | 'hash'> | Omit<EmptyFolderState, 'path'>

/** As {@link manifestDigest}, of states by their path keys. */
export function manifestDigestByKey(states: ReadonlyMap<string, DigestedState>): string {
  const digest = createHash('sha256')
  let text = 'tutti-manifest-1\n'
  for (const key of [...states.keys()].sort()) {
    const state = states.get(key)!
    const hash = state.fileType === 'dir' ? '-' : state.hash
    text += `${state.mode} ${hash} ${key.length} ${key}\n`
    if (text.length < chunkLength) continue
    digest.update(text, 'latin1')
    text = ''
  }
  return digest.update(text, 'latin1').digest('hex')
}

/** One call for each line takes three times as long. */
const chunkLength = 64 << 10
