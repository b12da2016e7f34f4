import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readStableFile } from '@tutti/workspace'
import type { KeptFile } from './git-state.ts'

/** Below `.git`: what says how the agent works and what it is in the middle of. Refs, index and objects are kept by their meaning. */
const names = [
  'config',
  'config.worktree',
  'shallow',
  'info/attributes',
  'info/exclude',
  'info/grafts',
  'info/sparse-checkout',
  'AUTO_MERGE',
  'BISECT_ANCESTORS_OK',
  'BISECT_EXPECTED_REV',
  'BISECT_FIRST_PARENT',
  'BISECT_LOG',
  'BISECT_NAMES',
  'BISECT_RUN',
  'BISECT_START',
  'BISECT_TERMS',
  'CHERRY_PICK_HEAD',
  'FETCH_HEAD',
  'MERGE_AUTOSTASH',
  'MERGE_HEAD',
  'MERGE_MODE',
  'MERGE_MSG',
  'MERGE_RR',
  'ORIG_HEAD',
  'REBASE_HEAD',
  'REVERT_HEAD',
  'SQUASH_MSG',
]
/** The last one may be large. */
const folders = ['hooks', 'rebase-apply', 'rebase-merge', 'sequencer', 'rr-cache']

/** Of one file and of all together, in bytes: a rebase of a few hundred commits fits. */
const [maxFile, maxAll] = [1 << 20, 4 << 20]

export const keptPaths: readonly string[] = [...names, ...folders]

/** The kept files as they are now; `tooLarge` names those that are beyond the limit. */
export function readKeptFiles(gitDir: string): { files: KeptFile[]; tooLarge: string[] } {
  const files: KeptFile[] = []
  const tooLarge: string[] = []
  let left = maxAll
  for (const path of [...names, ...folders.flatMap((folder) => filesBelow(gitDir, folder))]) {
    const stats = lstatSync(join(gitDir, path), { throwIfNoEntry: false })
    if (!stats?.isFile()) continue
    if (stats.size > Math.min(maxFile, left)) {
      tooLarge.push(path)
      continue
    }
    const { bytes } = readStableFile(Buffer.from(join(gitDir, path)))
    left -= bytes.length
    const mode = (stats.mode & 0o100) === 0 ? '100644' : '100755'
    files.push({ path, mode, base64: bytes.toString('base64') })
  }
  return { files, tooLarge }
}

function filesBelow(gitDir: string, folder: string): string[] {
  if (!lstatSync(join(gitDir, folder), { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(join(gitDir, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(gitDir.length + 1))
    .sort()
}
