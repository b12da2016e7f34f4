import type { Connection } from '@temporalio/client'
import { TuttiError, searchAttributes } from '@tutti/core'

/**
 * Operators find agents by search attributes (design §5). Checked at the start, since a workflow that sets an unknown one would
 * stand still.
 *
 * @throws TuttiError `failed_precondition` with the command that creates what is missing.
 */
export async function checkSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
  const missing = Object.values(searchAttributes).filter((name) => !customAttributes?.[name])
  if (missing.length === 0) return
  const flags = missing.map((name) => `--name ${name} --type Keyword`).join(' ')
  throw new TuttiError(
    'failed_precondition',
    `The Temporal namespace ${namespace} lacks search attributes. Create them: temporal operator search-attribute create --namespace ${namespace} ${flags}`,
    { missing: missing.join(',') },
  )
}
