import { rmdirSync } from 'node:fs'

/** Whether the folder is gone; it stays when something is in it. */
export function removeEmpty(folder: Buffer): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch {
    return false
  }
}
