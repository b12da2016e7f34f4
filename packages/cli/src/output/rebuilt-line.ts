import type { RebuiltLog } from '@tutti/store'
import { safeLine } from './terminal-text.ts'

/** What `tutti admin rebuild` says of one agent or ensemble. */
export function rebuiltLine({ log, there, absent, last, problem = '' }: RebuiltLog): string {
  if (absent)
    return `${log}: not rebuilt, there is no such ${log.startsWith('en-') ? 'ensemble' : 'agent'}: ${safeLine(problem)}`
  const what = there ? 'is there' : 'rebuilt'
  return `${log}: ${what}, ${last} events${problem ? `; not whole: ${safeLine(problem)}` : ''}`
}
