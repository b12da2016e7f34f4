import { chmodSync, lstatSync } from 'node:fs'

/**
 * The agent may have shut a folder of its workspace. Its owner, who we are too, can open it again, and the mode of a folder is nothing
 * that is captured.
 */
export function openFolder(path: string | Buffer): void {
  try {
    const stats = lstatSync(path)
    if (stats.isDirectory() && (stats.mode & 0o700) !== 0o700) chmodSync(path, (stats.mode & 0o777) | 0o700)
  } catch {
    // The walk says what is wrong.
  }
}
