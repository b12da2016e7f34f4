import type { Synthesis } from '@tutti/proto'
import type { CommandLine } from '../command-line.ts'
import type { Palette } from '../output/output.ts'

export interface SummaryOptions {
  readonly paint: Palette
  /** Terminal columns that there are; Infinity in a pipe: nothing is wrapped. */
  readonly width: number
  readonly command: CommandLine
  /** The pull request's or result's patch, when it is to be shown. */
  readonly patch?: Uint8Array | undefined
  /** What was checked last; for an ensemble that has no result, since nothing passed. */
  readonly checked?: Synthesis | undefined
  /** Whether this client has stopped it. */
  readonly stoppedHere?: boolean
  /** Commands and links, most useful first. */
  readonly next: readonly string[]
}
