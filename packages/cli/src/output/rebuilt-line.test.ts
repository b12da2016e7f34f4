import type { RebuiltLog } from '@tutti/store'
import { expect, test } from 'vitest'
import { rebuiltLine } from './rebuilt-line.ts'

const problem = 'A segment is missing.'
test.each<[Partial<RebuiltLog>, string]>([
  [{}, 'bc-1: rebuilt, 3 events'],
  [{ there: true }, 'bc-1: is there, 3 events'],
  [{ problem }, 'bc-1: rebuilt, 3 events; not whole: A segment is missing.'],
  [{ absent: true, problem }, 'bc-1: not rebuilt, there is no such agent: A segment is missing.'],
])('of a log that came back as %o', (log, line) => {
  expect(rebuiltLine({ log: 'bc-1' as RebuiltLog['log'], there: false, last: 3, ...log })).toBe(line)
})
