import { create } from '@bufbuild/protobuf'
import { QuestionSchema, type Question } from '@tutti/proto'

import type { OpenQuestion } from '../run-event.ts'
import { cutHead, stateBounds } from './state-bounds.ts'

const maxOptions = 20

/** A question as the wire shows it. Bounded, because the state of every child of an ensemble travels in one message. */
export function questionToWire({
  questionId,
  text,
  options = [],
  default: preset = '',
}: OpenQuestion): Question {
  return create(QuestionSchema, {
    questionId: cutHead(questionId, stateBounds.name),
    text: cutHead(text, stateBounds.summary),
    options: options.slice(0, maxOptions).map((option) => cutHead(option, stateBounds.todoText)),
    defaultAnswer: cutHead(preset, stateBounds.errorText),
  })
}
