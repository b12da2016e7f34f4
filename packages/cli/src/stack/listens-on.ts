import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const listening = '0A'

/**
 * Whether this process has the listening socket of a local port: an answer there may come from another's. Undefined where that
 * cannot be told (no /proc, or not our process).
 */
export function listensOn(pid: number, port: number): boolean | undefined {
  try {
    const sockets = new Set(
      readdirSync(`/proc/${pid}/fd`).map((fd) => {
        try {
          return readlinkSync(`/proc/${pid}/fd/${fd}`)
        } catch {
          // Closed between the listing and the look.
          return ''
        }
      }),
    )
    return ['tcp', 'tcp6'].some((table) =>
      inodesOf(table, port).some((inode) => sockets.has(`socket:[${inode}]`)),
    )
  } catch {
    return undefined
  }
}

/** The sockets that listen on a port, by inode; columns as in proc(5). */
function inodesOf(table: string, port: number): string[] {
  return readFileSync(`/proc/net/${table}`, 'utf8')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(
      ([, local, , state]) => state === listening && Number.parseInt(local!.split(':')[1]!, 16) === port,
    )
    .map((fields) => fields[9]!)
}
