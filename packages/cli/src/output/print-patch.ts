import type { Output } from './output.ts'
import { renderPatch, type Patch } from './patch.ts'

/**
 * A patch on stdout: coloured in a terminal, safe everywhere. `raw` writes the exact bytes for `git apply`. JSON has them in
 * `patch_base64`; `patch` is the same as text.
 */
export function printPatch(output: Output, patch: Patch, raw: boolean): void {
  if (raw) return output.stdout.write(patch.bytes)
  if (output.format === 'text') {
    for (const line of renderPatch(patch.bytes, output.paint).lines) output.line(line)
    return
  }
  output.json({
    base_commit: patch.baseCommit,
    commit: patch.commit,
    files_changed: patch.filesChanged,
    patch: new TextDecoder().decode(patch.bytes),
    patch_base64: Buffer.from(patch.bytes).toString('base64'),
  })
}
