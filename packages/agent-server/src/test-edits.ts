/** For tests. Runs inside: does each edit as far as the tree allows it. */
export const editScript = `
  import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
  const slash = Buffer.from('/')
  for (const { kind, name, other, content } of JSON.parse(process.argv[2])) {
    const path = Buffer.from(name, 'hex')
    const bytes = Buffer.from(content, 'hex')
    const up = path.lastIndexOf(47)
    const clear = (target) => rmSync(target, { recursive: true, force: true })
    try {
      if (kind === 'remove') { clear(path); continue }
      if (kind === 'chmod') { chmodSync(path, bytes.length % 2 ? 0o755 : 0o644); continue }
      if (kind === 'move') { renameSync(path, Buffer.from(other, 'hex')); continue }
      if (up > 0) {
        try { mkdirSync(path.subarray(0, up), { recursive: true }) } catch { clear(path.subarray(0, up)); mkdirSync(path.subarray(0, up), { recursive: true }) }
      }
      clear(path)
      if (kind === 'write') writeFileSync(path, bytes, { mode: bytes.length % 3 ? 0o644 : 0o755 })
      if (kind === 'link') symlinkSync(Buffer.concat([Buffer.from('t'), bytes.filter((byte) => byte !== 0)]), path)
      if (kind === 'folder') mkdirSync(path)
    } catch {}
  }
`
