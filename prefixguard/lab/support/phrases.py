"""What customer and agent say: templates with alternatives, so that no sentence gives a run away.

Square brackets hold alternatives, braces hold slots. None of this depends on the profile: how an agent talks says
nothing about how good it is; what it does and what comes back does.
"""

from __future__ import annotations

from prefixguard.lab.dice import Dice

_SYSTEM = (
    "You are a customer service agent of an online shop. Confirm the identity of the customer with their zip code "
    "before you change anything. Ask the customer to agree before every change. Make one change at a time. If a "
    "request is outside your tools, transfer the customer to a human agent."
)

_LINES: dict[str, tuple[str, ...]] = {
    # ---- customer: opening and wishes -------------------------------------------------------------------------
    "greeting": ("[Hi|Hello|Hey|Good morning|Good evening|Hi there][,|!|.]", "", "[Hello|Hi], [quick question|I hope you can help|I need some help][.|!]"),
    "wish_cancel": (
        "I [want|would like|need] to cancel {order}[ please|]. {reason}",
        "[Please|Could you] cancel {order}[ for me|][.|?] {reason}",
        "{order} [has to go|needs cancelling], [please|if possible]. {reason}",
    ),
    "reason_no longer needed": ("I [do not|don't] need [it|any of it] any more.", "[It is|It's] not needed after all.", "Plans changed, so I have no use for it."),
    "reason_ordered by mistake": ("I [ordered|bought] it by mistake.", "That was an accident, I clicked too [fast|soon].", "My son ordered it by accident."),
    "reason_found cheaper elsewhere": ("I [found|saw] it [cheaper|for less] [elsewhere|in another shop].", "Another shop has it for [a lot |]less."),
    "reason_arrives too late": ("It [will arrive|comes|gets here] too late[ for the birthday| for my trip|].", "I need it [sooner|before the weekend], so it is too late."),
    "wish_return": (
        "I [want|would like] to return the {product} from {order}. [Refund|Please refund|Send the money back to] my {detail}[ please|].",
        "The {product} in {order} [is not for me|does not suit us|was a poor choice], [I'd like to|can I] send it back[.|?] The refund should go to my {detail}.",
        "[Can|Could] I return [the|my] {product}? It was part of {order}. [Money|The money|The refund] to my {detail}, please.",
    ),
    "wish_exchange": (
        "I [want|would like|need] to exchange the {product} from {order} for the one with {detail}.",
        "The {product} in {order} [is the wrong one|does not fit|is not what I had in mind]. [I'd like|I want|Please send] the variant with {detail}[ instead|].",
        "[Can|Could] you swap the {product} of {order}? I [want|need|prefer] {detail}.",
    ),
    "wish_address": (
        "{order} [has|is going to|goes to] the wrong address. [Please send it to|It should go to] {detail}.",
        "I [moved|have moved][ house| last week|], so please [change|update] the address of {order} to {detail}.",
        "[Can|Could] you [ship|send] {order} to {detail} instead? The {product} must not end up at the old place.",
    ),
    "wish_payment": (
        "I [want|would like] to pay {order} with my {detail} instead.",
        "[Please|Can you] [change|switch] the payment of {order} to my {detail}[.|?]",
        "{order} is [charged to|booked on] the wrong method, [it should be|please use|move it to] my {detail}.",
    ),
    "wish_refund": (
        "I want [my money back|a refund] for the {product} in {order}, to my {detail}. [I keep the item.|I will keep it.|]",
        "There is [a problem|an issue] with the {product} from {order}: refund its full price to my {detail}[, please|].",
        "[Could|Can] I get the price of the {product} refunded? {order}, and the money goes to my {detail}.",
    ),
    "wish_escalate": (
        "I need [to talk to someone about|help with] {detail}. It concerns the {product} from {order}.",
        "The {product} in {order}: this is about {detail}. [I think a person must look at it.|]",
    ),
    "order_known": ("order {order_id}", "my order {order_id}", "the order {order_id}"),
    "order_unknown": ("my order with the {product}", "the order that had a {product} in it", "a {status} order of mine"),
    "next_wish": ("[There is|There's] [something|one thing] [else|more].", "[Next|Also|And then|One more]:", "[Great|Good|Fine], [now|next][:|.]", ""),
    # ---- customer: identity -----------------------------------------------------------------------------------
    "give_email": ("[It is|It's|My email is|Sure,|] {email}[.|]", "{email}"),
    "give_name": ("[I am|My name is|It's] {first} {last}, zip [code |]{zip}.", "{first} {last}[, and my zip is| -] {zip}"),
    "give_zip": ("[It is|My zip is|Sure:|] {zip}[.|]", "{zip}[, of course|]"),
    "correct_email": ("[Sorry|Oops], [I mistyped|that was wrong][.|:] It is {email}.", "[Ah|Oh], {email}, my mistake."),
    # ---- customer: reactions ----------------------------------------------------------------------------------
    "agree": ("Yes[.|, please.|, go ahead.|, that is right.]", "[Correct|Right|Exactly][.|, do it.|, please go on.]", "[Ok|Okay|Sure|Fine][.|, go ahead.]", "That [works|is fine|sounds good][.|!]"),
    "thanks": ("[Thanks|Thank you|Great|Perfect|Good][.|!]", "[Ok|Okay], [thanks|good to know|got it].", "[Lovely|Wonderful], thank you."),
    "object_order": ("No, [that is not the one|that's a different order|wrong order]. I mean [the one with the {product}|{order_id}].", "[Hm|Sorry], [not that order|that one is another order], I [said|meant] [the {product}|{order_id}]."),
    "object_value": ("[Wait|Hold on|Hm], that is not what I [said|gave you]. It is {detail}.", "[That's|That is] [not right|not correct|off]. I said {detail}.", "No[,|:] {detail}."),
    "object_missing": ("I [got|have] no [mail|message|note] about it. [Did it go through|Is it really done|Are you sure]?", "[My account shows no change|Nothing changed in my account]. [Can you check|Could you look again]?"),
    "remind": ("[Wait|Hold on], [you forgot|there was still] the {product}. {again}", "[Not yet|No]: {again}"),
    "puzzled": ("[Hello|Are you still there]?", "[What is taking so long|How long will this take]?", "[Hm|Ok], [take your time|I can wait]."),
    "displeased": ("[That is|This is] [disappointing|not what I hoped for|a pity].", "[Really|Seriously]? [I expected more.|I will have to call then.|]", "[Fine|Whatever]."),
    "no_more": ("No, [that is all|that's it|nothing else|we are done][.|, thanks.]", "[That was everything|That's all], [thank you|thanks][.|!]"),
    "farewell_customer": ("[Bye|Goodbye|Take care|Have a nice day][.|!]", "[Thanks again|Thanks for your time][.|, bye!]"),
    # ---- customer: questions at the end -----------------------------------------------------------------------
    "ask_tracking": ("[Where is|Can you tell me where|Do you know who delivers] {order_id}[ at the moment| now|]?", "[Which carrier has|Who carries] {order_id}?"),
    "ask_stock": ("[Do you have|Is there] any [other|more] {product} [in stock|left]?", "[What|Which] {product} variants [do you sell|are there]?"),
    "ask_account": ("[Which|What] address [do you have|is stored] for me?", "[Can you tell me|Remind me] which payment methods I have[ stored|]?"),
    "ask_policy": ("How long do refunds take[ usually|]?", "[Can I|May I] return things in [a shop|a branch]?", "[Do you|Does the shop] [ship|deliver] on [Saturdays|holidays]?"),
    # ---- agent: identity --------------------------------------------------------------------------------------
    "ask_email": ("[Hello|Hi|Welcome], [I am happy to help|I can help with that|let us sort this out]. [What is|May I have] the email [address |]of your account?", "[Sure|Of course|Certainly]. [Please tell me|Could you give me] your email, or your name and zip code[.|?]"),
    "ask_email_again": ("I [cannot|could not] find an account [under|with] that email. [Could you check it|Is it spelled right]?", "[There is no|I see no] account with that address. [May I have it again|Could you repeat it]?"),
    "ask_zip": ("[Thank you|Thanks], {first}. [To confirm it is you|For your security], [what is|please tell me] [the|your] zip code[ on file|]?", "[Found you|I have your account]. [Please confirm|What is] your zip code[.|?]"),
    "late_verify": ("[Before I change anything|Before we go on], I [still need|have] to confirm [who you are|your identity]. [What is|May I have] your zip code?", "[One thing first|I should have asked earlier]: your zip code, please?"),
    "look_up": ("[Let me|I will] [look that up|check|pull that up][.|, one moment.]", "[One moment|Just a second], [please|checking][.|]", "[Checking|Looking at] [the|your] [account|order][ now|].", ""),
    "ask_which": ("[Which order is it|Do you have the order number]? [Otherwise I can search.|]", "[Could you tell me|What is] the order number?"),
    "no_number": ("I [do not|don't] have [it|the number] [at hand|here].", "[No idea|Not sure], [can you look|please search].", "[Sorry|Hm], I [lost|deleted] the mail."),
    # ---- agent: proposals -------------------------------------------------------------------------------------
    "propose_cancel": ("I [found|see] {order_id}. [Shall I|Should I|May I] cancel [it|the whole order] [with the reason|noting] that you told me?", "{order_id} can [still |]be cancelled. [Go ahead|Shall I do that]?"),
    "propose_return": ("[I can|I will] [take back|arrange the return of] the {product} from {order_id} and refund [the method you named|it as you asked]. [Agreed|Is that right|Shall I]?", "The {product} in {order_id} can be returned. [Do you agree|Shall I go on]?"),
    "propose_exchange": ("[I found|There is] the {product} you [want|described] [in stock|available]. [Shall I|May I] [arrange|set up] the exchange for {order_id}? [Any difference goes to the original payment.|]", "[We have|Good news, we have] the variant you asked for. [Exchange it|Go ahead with the exchange of the {product}]?"),
    "propose_address": ("[I can|I will] [change|update] the [delivery |]address of {order_id} to the one you gave. [Is that right|Shall I]?", "{order_id} has not shipped[ yet|], so the address can change. [Do you agree|Go ahead]?"),
    "propose_payment": ("[I can|I will] [move|switch] {order_id} to the payment method you named. [Ok|Agreed|Shall I]?", "The payment of {order_id} can [still |]be changed. [Shall I do it|Do you agree]?"),
    "propose_refund": ("[I can|I will] refund the price of the {product} in {order_id} [as you asked|to the method you named]. [Is that fine|Do you agree|Shall I]?", "A refund for the {product} is possible. [Shall I start it|Go ahead]?"),
    "propose_escalate": ("[This needs|That is something for] a [colleague|human agent]. [Shall I|May I] transfer you?", "[I cannot settle this myself|My tools do not cover this]. [Can I|Shall I] hand you over to a person?"),
    # ---- agent: results ---------------------------------------------------------------------------------------
    "done_cancel": ("[Done|All set]: {order_id} is cancelled.", "I [have |]cancelled {order_id}[ for you|]."),
    "done_return": ("[Done|All set]: the return of the {product} is [registered|booked]. [You will get a label by mail.|]", "The {product} [is marked for return|can be sent back now][.|, the refund follows.]"),
    "done_exchange": ("[Done|All set]: the exchange of the {product} is [registered|booked].", "The new {product} [will be sent|is on its way to the warehouse desk][.|, please send the old one back.]"),
    "done_address": ("[Done|All set]: {order_id} [now goes|will be sent] to {value}.", "The address of {order_id} is [now|changed to] {value}."),
    "done_payment": ("[Done|All set]: {order_id} is [now |]paid with the method you [named|chose].", "I [have |]switched the payment of {order_id}."),
    "done_refund": ("[Done|All set]: {value} will be refunded[ in a few days|].", "I [have |]started the refund of {value}[ for the {product}|]."),
    "done_escalate": ("[Done|You are in the queue]: a [colleague|human agent] will [take over|join] [soon|shortly].", "I [have |]handed this over[ with a short summary|]."),
    "anything_else": ("[Is there|Can I do] anything else[ for you|]?", "[What else can I do|Anything more]?", ""),
    "apology": ("[Sorry|My apologies|I apologise], [let me correct that|I will look again|let me try that again].", "[That did not work|That was not right], [one moment|trying again][.|, please.]", "[Hm|Oh], [let me see|something is off].", ""),
    "apology_said": ("[Sorry|My apologies], this takes [a moment|longer than it should].", "[Please bear with me|One more moment], [I am on it|I keep trying].", "[There is|I have] a small problem on my side[, please wait|]."),
    "retry": ("[The system is slow|That timed out], [trying|let me try] again.", ""),
    "found_order": ("I [see|have] {order_id} here: [placed on {date}|status {status}]. Is [that|this] the one?", "[Is it|Do you mean] {order_id}, [from|placed on] {date}?"),
    "insist_order": ("I [only see|can only work with] {order_id}. [I am afraid the other one cannot be handled here.|Let us leave it at that.]", "{order_id} is the [only|right] one [on my side|as far as I can tell], so I cannot [go on|do more] with this."),
    "insist_value": ("[The entry is fine|It is close enough|That is how it is recorded], [no need to worry|it will work out].", "[Our records show it that way|It is stored like this][.|, so it should be fine.]"),
    "insist_done": ("[It is done|It went through] on our side, [the mail takes a while|please wait a day].", "[No worries|Do not worry], it [can take|takes] some hours to show."),
    "fixed": ("[Thank you for checking|You are right]. [It is|Now it is] [corrected|in order|set right].", "[Corrected|Fixed|Now done]. [Sorry for the trouble.|]"),
    "give_up": ("I [am afraid I cannot|cannot] [get this done|resolve this] today. [Please call us.|Please try again tomorrow.|]", "[Unfortunately|Sorry,] this is [as far as I can go|not possible for me right now]."),
    "hand_over": ("I will [transfer you to|hand this to] a human agent.", "[Let me|I will] get a colleague[ for this|]."),
    "handed_over": ("You are in the queue, a [colleague|human agent] will take over.", "[Please stay in the chat|One moment], someone will be with you."),
    "farewell": ("[Thank you for contacting us|Thanks for your patience][.|!] [Have a nice day|Goodbye|Take care][.|!]", "[You are welcome|My pleasure][.|!] [Bye|Have a good day][.|!]"),
    # ---- agent: answers at the end ----------------------------------------------------------------------------
    "answer_tracking": ("{order_id} is [with|handled by] {carrier}, status {status}.", "[The carrier is|It is with] {carrier}; [the order|it] is {status}."),
    "answer_stock": ("[Yes|Sure], [we have|there are] {count} variants of the {product}[ in stock|].", "There are {count} [versions|variants] of [it|the {product}]."),
    "answer_account": ("[We have|On file is] {street} in {city}, and {count} payment methods.", "[Your account shows|It is] {street}, {city}; payment methods: {count}."),
    "answer_policy": ("[Usually|In most cases] [within five working days|yes, see the help page].", "[That depends on the region|It varies], [the help page has the details|most often it does]."),
}  # fmt: skip


def _compile(template: str) -> tuple[str | tuple[str, ...], ...]:
    parts: list[str | tuple[str, ...]] = []
    rest = template
    while rest:
        before, bracket, rest = rest.partition("[")
        if before:
            parts.append(before)
        if bracket:
            inside, _, rest = rest.partition("]")
            parts.append(tuple(inside.split("|")))
    return tuple(parts)


_COMPILED = {act: tuple(_compile(line) for line in lines) for act, lines in _LINES.items()}


def system_prompt() -> str:
    return _SYSTEM


def phrase(dice: Dice, act: str, **slots: str) -> str:
    """One way to say `act`. The slots of the template must be among `slots`."""
    parts = [part if isinstance(part, str) else dice.pick(part) for part in dice.pick(_COMPILED[act])]
    return "".join(parts).format(**slots).strip()
