import type { Output } from './output.ts'
import { patchJson, renderPatch, wholePatch, type Patch } from './patch.ts'

/**
 * A patch on stdout: coloured in a terminal, safe everywhere. `raw` writes the exact bytes for `git apply`. JSON has them as
 * {@link patchJson} says.
 */
export function printPatch(output: Output, patch: Patch, raw: boolean): void {
  if (raw) return output.stdout.write(wholePatch(patch))
  if (output.format === 'text') {
    for (const line of renderPatch(patch, output.paint).lines) output.line(line)
    return
  }
  output.json({
    base_commit: patch.baseCommit,
    commit: patch.commit,
    files_changed: patch.filesChanged,
    ...patchJson(wholePatch(patch)),
  })
}
